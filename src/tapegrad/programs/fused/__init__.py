"""Value and gradient of a recorded path as machine code, made of the rule table's text without any inference of types."""
