"""Forecasts handed in where others judge them: planned in full, checked, recorded, and sent once."""
