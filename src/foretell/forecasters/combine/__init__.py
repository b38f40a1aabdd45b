"""From several answers to one: aggregation, shrinkage, calibration, coherence, ensembles."""
