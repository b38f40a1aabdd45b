"""The way to each provider: our values out, their JSON in between, our values back."""
