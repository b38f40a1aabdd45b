"""Forecasters for questions about time series. They call no language model."""
