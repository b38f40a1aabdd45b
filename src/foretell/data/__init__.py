"""The outside world apart from models: HTTP, search, pages, series, markets, question sets."""
