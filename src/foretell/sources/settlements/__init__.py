"""How listed events came out. Nothing that forecasts may import from here."""
