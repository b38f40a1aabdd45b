"""Chain, tree, graph and forest of thoughts over the same grounders as a proposition tree: what it has to beat."""
