"""Trees as JSON files: read with errors that name the claim, written whole."""
