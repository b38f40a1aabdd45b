"""Outcomes of market events. Separate from markets, because forecasters must never see an outcome."""
