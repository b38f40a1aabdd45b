"""The composition root: catalog, command line."""
