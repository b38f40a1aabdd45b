"""Inspect AI: question sets as tasks, proper scores as scorers, and logs as tables of forecasts."""
