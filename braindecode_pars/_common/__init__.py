"""What several parts share: files, checks, names, random numbers, devices, training callbacks."""
