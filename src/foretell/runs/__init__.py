"""Runs: spec, trials, store, executor, workers, and the runtime that connects models, tools and forecaster."""
