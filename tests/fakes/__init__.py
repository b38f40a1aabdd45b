"""Servers and stored runs for tests and benchmarks."""
