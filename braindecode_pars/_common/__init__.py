"""Code shared by all parts of the package: files, checks, names, random numbers, callbacks."""
