"""The command line."""

from foretell.interface import offer

HOMES = {
    "foretell.cli.commands": "OLD_SPELLINGS flags operation_command",
    "foretell.cli.main": "cli",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
