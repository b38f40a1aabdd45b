"""A claim as a tree of propositions: grown by agents, computed exactly, changed by what-if."""
