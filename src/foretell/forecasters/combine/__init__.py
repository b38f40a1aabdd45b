"""Combines several forecasts into one: aggregation, shrinkage, calibration, coherence, ensembles."""
