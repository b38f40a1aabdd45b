"""foretell for assistants, over the Model Context Protocol."""

from foretell.interface import offer

HOMES = {
    "foretell.mcp.permissions": "ReadableFiles ServerPermissions WITHHELD",
    "foretell.mcp.server": "http_app limit_size listen make_server run_tool",
    "foretell.mcp.tools": "TOOLS available_tools",
}
"""Module → the names that the rest of foretell uses."""

__getattr__, __dir__ = offer(__name__, HOMES)
