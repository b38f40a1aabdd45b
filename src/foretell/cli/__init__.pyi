"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.cli.commands import operation_command as operation_command
from foretell.cli.main import cli as cli
