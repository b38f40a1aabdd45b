"""What a page shows, as data made from the store; no HTML."""
