"""The command line."""

from foretell.interface import offer

HOMES = {
    "foretell.cli.commands": "operation_command",
    "foretell.cli.main": "cli",
}
"""Module → the names that the rest of foretell uses."""

__getattr__, __dir__ = offer(__name__, HOMES)
