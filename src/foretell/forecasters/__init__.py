"""From a question, seen as of a cutoff, to a forecast."""
