"""Compute the exact probabilities of a tree and their sensitivity to its inputs."""
