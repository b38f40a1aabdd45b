"""Submit forecasts to Metaculus, Prophet Arena and ForecastBench, and keep a ledger of what was submitted."""
