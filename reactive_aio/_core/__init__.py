"""The base of all packages: the failures that are caught, and the notes beside them."""
