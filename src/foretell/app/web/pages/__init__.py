"""One module per page: its routes, which show a view as HTML and as JSON."""
