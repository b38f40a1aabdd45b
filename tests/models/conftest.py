"""Fixtures of the model tests: clients for local addresses only, keys, and the kill harness."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from foretell.models.names import is_loopback
from foretell.models.provider import ProviderClient
from foretell.models.router import open_provider

CANARY = "sk-canary-0123456789-do-not-leak"
KEYS = {name: CANARY for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY")}


@pytest.fixture
def loopback() -> Callable[[str, str], ProviderClient]:
    """Opens clients for addresses on this machine only."""

    def opened(name: str, address: str) -> ProviderClient:
        assert is_loopback(address)
        return open_provider(name, KEYS, address=address)

    return opened


@pytest.fixture(scope="session")
def kill_harness() -> ModuleType:
    """The module next to this file. Tests of other packages load it in the same way."""
    spec = importlib.util.spec_from_file_location("kill_harness", Path(__file__).with_name("kill_harness.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kill_harness"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def keys() -> dict[str, str]:
    """A recognizable key for every provider."""
    return dict(KEYS)


@pytest.fixture
def canary() -> str:
    """The key itself."""
    return CANARY
