"""A simulated exchange: events with a hidden truth, traders who half know it, news about it, and Kalshi's wire."""
