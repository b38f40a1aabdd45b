"""A claim decomposed into a tree of propositions, grounded at the leaves and synthesised upwards."""
