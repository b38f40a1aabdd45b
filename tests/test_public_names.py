"""The public names: all there, each in its home, and nothing loaded before it is used."""

import subprocess
import sys
from importlib import import_module

import pytest

import foretell

LIGHT = """
import sys
import foretell
dir(foretell)
heavy = {"numpy", "scipy", "duckdb", "pydantic", "click", "yaml", "aiohttp", "rich", "inspect_ai", "mcp", "matplotlib"}
print(sorted(heavy & set(sys.modules)), sum(name.startswith("foretell") for name in sys.modules))
"""


def test_every_name_leads_to_its_home():
    for name in foretell.__all__:
        found = getattr(foretell, name)
        home = next(home for home, names in foretell.HOMES.items() if name in names.split())
        assert found is getattr(import_module(home), name), name
        assert found.__doc__, name
    assert set(foretell.__all__) <= set(dir(foretell))


def test_importing_costs_nothing():
    told = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.split() == ["[]", "2"], "foretell and the module that loads its names"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'guess'"):
        foretell.guess  # noqa: B018 - the access itself is the test
    assert not hasattr(foretell, "guess")
