"""A tree as arithmetic: compiled to one list of operations that is exact where claims are shared."""
