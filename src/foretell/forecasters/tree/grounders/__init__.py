"""Ways to judge a leaf: a plain prompt, search, deep research, a notebook, the belief agent."""
