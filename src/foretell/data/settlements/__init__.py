"""How market events came out. Apart from the rest, because who forecasts never sees an answer."""
