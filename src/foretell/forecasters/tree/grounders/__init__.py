"""Grounders, which estimate leaves: a plain prompt, search, deep research, a notebook, and the belief agent."""
