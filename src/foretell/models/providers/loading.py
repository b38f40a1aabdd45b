"""Providers by name."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from foretell.models.model import Model
from foretell.models.provider import Provider
from foretell.plugins import load


def load_provider(name: str) -> Provider:
    """The provider with this name; registered functions and models are wrapped as providers."""
    plugin = load("models", name)
    if isinstance(plugin, Provider):
        return plugin
    from foretell.models.providers.function import function_provider

    return function_provider(name, cast("Callable[..., Any] | Mapping[str, Any] | Model", plugin))
