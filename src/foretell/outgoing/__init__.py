"""Outgoing requests: connections, rate limits and retries."""
