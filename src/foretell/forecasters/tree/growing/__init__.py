"""Growing a tree with models: analyze, ground, synthesize, within budgets."""
