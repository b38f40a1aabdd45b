"""Tables of forecasts and outcomes in, leaderboards and comparisons out."""
