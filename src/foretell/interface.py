"""Lazy loading of the public names that a package exposes to the rest of foretell.

A package's `__init__.py` lists its public names by module, and `tools/write_stub.py` generates the `__init__.pyi` that
type checkers read. A listed name keeps its import path when code moves inside the package; a name that is not listed
may change at any time.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def offered_names(homes: Mapping[str, str]) -> dict[str, str]:
    """Map every public name to its module, given the names listed by module.

    >>> offered_names({"foretell.metrics.scores": "brier log_score"})
    {'brier': 'foretell.metrics.scores', 'log_score': 'foretell.metrics.scores'}
    """
    return {name: home for home, names in homes.items() for name in names.split()}


def offer(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose names are defined in other modules.

    Tab completion shows the public names and the loaded subpackages, but not the names that this mechanism itself uses.
    """
    offered = offered_names(homes)

    def load(name: str) -> Any:
        if name not in offered:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(offered[name]), name)

    def public() -> list[str]:
        return sorted({*vars(sys.modules[package]), *offered} - {"HOMES", "interface", "offer", "offered_names"})

    return load, public
