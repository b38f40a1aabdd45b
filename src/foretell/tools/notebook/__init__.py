"""Notebooks that run in a sandbox: a real Jupyter kernel without network, and a fenced door to data."""
