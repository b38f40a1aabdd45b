"""Practice models: every provider's API format on a local port, answered by scripts."""
