"""Forecasts from what happened to questions like this one: base rates and the outside view."""
