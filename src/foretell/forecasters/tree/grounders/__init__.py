"""Ways to find out how likely a single claim is."""
