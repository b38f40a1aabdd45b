"""Charts as inline SVG: each function takes numbers and returns a `Chart`."""
