"""Forecasting from one shared context: what every model is shown, how it is asked, and how its answer is read."""
