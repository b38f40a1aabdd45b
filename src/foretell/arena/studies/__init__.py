"""Experiments on forecasters: what they do, whether they can be trusted to finish, what moves them."""
