"""Addresses of the web application and what answers them."""
