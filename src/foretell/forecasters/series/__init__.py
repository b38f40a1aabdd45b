"""Forecasts of a time series without a language model."""
