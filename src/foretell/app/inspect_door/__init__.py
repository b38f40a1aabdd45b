"""foretell as a citizen of Inspect AI: question sets as tasks, scores as scorers, logs as tables of forecasts.

Only `tasks`, `scorers`, `metrics` and `registry` import Inspect; the rest works without it.
"""
