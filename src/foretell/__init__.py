"""Probabilities for the future, the reasons behind them, and proof of how good they are."""
