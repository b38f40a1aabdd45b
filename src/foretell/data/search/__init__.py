"""Search engines."""
