"""Determines when a text was written: finds dates in many languages, and those that date the text itself."""
