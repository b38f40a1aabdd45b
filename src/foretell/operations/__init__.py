"""All operations, one function each, called by the command line, web app, MCP and Python."""
