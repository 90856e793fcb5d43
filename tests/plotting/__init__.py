"""A package, because test files in other folders have the same names."""
