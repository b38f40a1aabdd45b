"""A practice world: model, search, market and tournament servers that live on this machine."""
