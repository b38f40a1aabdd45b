"""Grow a tree with models: break down claims, ground the leaves, and combine them, within budgets."""
