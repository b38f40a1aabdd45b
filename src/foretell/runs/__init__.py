"""Runs: spec, cells, store, executor, workers, and the runtime that puts model, tools and forecaster together."""
