"""Search engines behind one port. Each returns what it was told, with an honest label for every date."""
