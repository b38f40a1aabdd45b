"""The names that a package offers to the rest of the house, each loaded on first use.

A package's `__init__.py` lists them by home; `tools/write_stub.py` makes the `__init__.pyi` that type checkers read.
What is listed stays where it is asked for when things move inside the package; what is not listed may change any day.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def offered_names(homes: Mapping[str, str]) -> dict[str, str]:
    """The home of every name, from lists of names by home.

    >>> offered_names({"foretell.metrics.scores": "brier log_score"})
    {'brier': 'foretell.metrics.scores', 'log_score': 'foretell.metrics.scores'}
    """
    return {name: home for home, names in homes.items() for name in names.split()}


def offer(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package whose names live in other modules.

    Tab completion shows the offered names and loaded subpackages, but not the machinery behind them.
    """
    offered = offered_names(homes)

    def load(name: str) -> Any:
        if name not in offered:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(offered[name]), name)

    def public() -> list[str]:
        return sorted({*vars(sys.modules[package]), *offered} - {"HOMES", "interface", "offer", "offered_names"})

    return load, public
