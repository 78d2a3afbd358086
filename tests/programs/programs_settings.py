"""What functions of the tests import themselves; `test_surroundings` puts modules in its place."""

scale = 2.0
