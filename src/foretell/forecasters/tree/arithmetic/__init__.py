"""Exact probabilities of a tree, and what they depend on."""
