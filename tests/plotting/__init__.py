"""A package, since some figures are named as the protocols whose tables they draw."""
