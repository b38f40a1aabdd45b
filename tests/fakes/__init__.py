"""Servers and stored runs that only tests and benchmarks need."""
