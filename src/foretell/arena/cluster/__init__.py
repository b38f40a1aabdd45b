"""The cells of a run on many machines: a queue in PostgreSQL, workers that take from it, and nobody in charge."""
