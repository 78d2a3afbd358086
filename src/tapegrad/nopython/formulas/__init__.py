"""From the rule table to instructions: which rule an operation stands for, the tree of a statement, its partials."""
