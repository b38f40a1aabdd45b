"""Edits on a tree, and only what they touch worked out anew."""
