"""Turns tables of forecasts and outcomes into leaderboards and comparisons."""
