"""Forecasts from the outcomes of similar questions: base rates and the outside view."""
