"""Question sets as Inspect AI tasks, our scores as its scorers, and its logs as forecasts."""
