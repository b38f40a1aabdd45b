"""The web application: pages, JSON API, live updates, and a static site generated from them."""
