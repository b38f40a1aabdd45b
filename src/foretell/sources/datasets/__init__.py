"""Readers of question sets and their resolutions."""
