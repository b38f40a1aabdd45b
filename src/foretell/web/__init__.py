"""The web application: pages, JSON API, live updates, and the static site made from them."""
