"""A run's forecasts in the formats that benchmarks take."""
