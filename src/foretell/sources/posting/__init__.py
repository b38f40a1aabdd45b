"""Where forecasts are handed in. The only place that writes to somebody else's server."""
