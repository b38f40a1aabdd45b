"""Grow a tree with models, within budgets: break down claims, ground the leaves, and combine them."""
