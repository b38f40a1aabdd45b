"""Fixtures of the llm tests: nobody talks to a real provider, and the kill harness is at hand."""

import importlib.util
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from foretell.models.names import is_loopback
from foretell.models.router import ProviderClient, open_provider

CANARY = "sk-canary-0123456789-do-not-leak"
KEYS = {name: CANARY for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY")}


@pytest.fixture(autouse=True)
def _no_real_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """pydantic-ai refuses to ask anybody, but for wires opened by `loopback`."""
    models = pytest.importorskip("pydantic_ai.models")
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], ProviderClient]:
    """Opens wires to this machine only."""
    import pydantic_ai.models

    def opened(name: str, address: str) -> ProviderClient:
        assert is_loopback(address)
        with warnings.catch_warnings():
            # The Google SDK has an invalid escape in a docstring, which warns where no bytecode is cached.
            warnings.simplefilter("ignore")
            importlib.import_module("google.genai" if name.startswith("google") else "anthropic")
        monkeypatch.setattr(pydantic_ai.models, "ALLOW_MODEL_REQUESTS", True)
        return open_provider(name, KEYS, address=address)

    return opened


@pytest.fixture(scope="session")
def kill_harness() -> ModuleType:
    """The module beside this file; tests of other packages load it the same way."""
    spec = importlib.util.spec_from_file_location("kill_harness", Path(__file__).with_name("kill_harness.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kill_harness"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def keys() -> dict[str, str]:
    """A key for every provider, easy to recognise should it leak."""
    return dict(KEYS)


@pytest.fixture
def canary() -> str:
    """The key itself."""
    return CANARY
