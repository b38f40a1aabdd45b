"""Practice models: every provider's format on a port of this machine, answered by scripts."""
