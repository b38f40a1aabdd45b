"""One plug-in of every kind."""
