"""News about a question that was forecast before: whether it bears on the question, and what it changes."""
