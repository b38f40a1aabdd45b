"""Forecasters turn a question, as of a given time, into a forecast."""
