"""Grows a tree with models: takes claims apart, grounds the leaves and puts the parts together, within budgets."""
