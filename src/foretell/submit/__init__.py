"""Forecasts for Metaculus, Prophet Arena and ForecastBench, and the ledger of what was submitted."""
