"""A simulated exchange: events with a hidden truth, partly informed traders, news, and Kalshi's API."""
