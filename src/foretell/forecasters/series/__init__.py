"""Forecasters for questions about time series; they ask no model."""
