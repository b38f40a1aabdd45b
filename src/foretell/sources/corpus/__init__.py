"""A corpus of dated documents on this machine: full-text search with the date filter inside, and no network."""
