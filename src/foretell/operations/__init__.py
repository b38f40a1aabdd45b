"""Everything a user can ask for, one function each; the command line, the pages, MCP and Python call these."""
