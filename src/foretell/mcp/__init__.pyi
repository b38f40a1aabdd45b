"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.mcp.permissions import ReadableFiles as ReadableFiles
from foretell.mcp.permissions import ServerPermissions as ServerPermissions
from foretell.mcp.permissions import WITHHELD as WITHHELD
from foretell.mcp.server import http_app as http_app
from foretell.mcp.server import limit_size as limit_size
from foretell.mcp.server import listen as listen
from foretell.mcp.server import make_server as make_server
from foretell.mcp.server import run_tool as run_tool
from foretell.mcp.tools import TOOLS as TOOLS
from foretell.mcp.tools import available_tools as available_tools
