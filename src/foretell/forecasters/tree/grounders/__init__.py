"""Grounders, which estimate leaves: a plain prompt, search, deep research, a notebook, the belief agent."""
