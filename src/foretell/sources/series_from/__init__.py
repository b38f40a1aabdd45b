"""Where time series come from."""
