"""A package, because some test files have the same names as those of the protocols."""
