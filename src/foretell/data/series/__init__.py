"""Time series by provider, cut off at a date."""
