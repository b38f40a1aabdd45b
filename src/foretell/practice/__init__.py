"""Practice: model, search, market and tournament servers that run on this machine."""
