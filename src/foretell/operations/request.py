"""The base of all requests, under the name that commands and operations import it by; see `foretell.request`."""

from foretell.request import Request, cli_hints, setting

__all__ = ["Request", "cli_hints", "setting"]
