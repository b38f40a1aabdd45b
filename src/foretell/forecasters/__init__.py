"""A question, seen as of a moment, becomes a forecast."""
