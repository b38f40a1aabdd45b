"""A notebook whose cells run in a sandboxed kernel."""
