"""Growing a tree: analyse a claim, ground its leaves, synthesise upwards."""
