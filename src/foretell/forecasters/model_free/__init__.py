"""Forecasts for data-set questions from several series models, weighted by their past scores."""
