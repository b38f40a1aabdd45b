"""Model names as a person writes them: `provider:name`."""

from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from foretell.questions.problems import InputError

Provider = Literal["openai", "anthropic", "google", "openrouter", "compat", "local", "scripted"]

FORMS = (
    "openai:NAME",
    "anthropic:NAME",
    "google:NAME",
    "openrouter:VENDOR/NAME",
    "compat:NAME@http://HOST:PORT/v1",
    "local:PATH.gguf",
    "scripted:FILE.jsonl",
)


@dataclass(frozen=True, kw_only=True)
class ModelName:
    """A model and where it lives.

    >>> ModelName.read("compat:qwen3:8b@http://localhost:11434/v1")
    ModelName(provider='compat', name='qwen3:8b', url='http://localhost:11434/v1')
    """

    provider: Provider
    name: str
    """As the provider knows it; for `local` and `scripted` a path."""
    url: str = ""
    """Base address of an OpenAI-compatible server."""

    @staticmethod
    @cache
    def read(written: str) -> "ModelName":
        """Understand a name, or say how names are written."""
        provider, colon, name = written.partition(":")
        if not colon or not name or provider not in get_args(Provider):
            raise InputError(f"cannot read the model name {written!r}", hint=f"write {', '.join(FORMS)}")
        if provider != "compat":
            return ModelName(provider=provider, name=name)  # pyright: ignore[reportArgumentType] - checked above
        name, at, url = name.rpartition("@")
        if not at or not name or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise InputError(f"the model name {written!r} lacks its server", hint=f"write {FORMS[4]}")
        return ModelName(provider="compat", name=name, url=url.rstrip("/"))

    @property
    def place(self) -> str:
        """What shares one client, one set of limits and one bill: the provider, or a server by its address."""
        if self.provider in ("local", "scripted"):
            return f"{self.provider}:{self.name}"
        return f"compat@{self.url}" if self.provider == "compat" else self.provider

    @property
    def free(self) -> bool:
        """Runs on this machine, so that nobody sends a bill."""
        return self.provider in ("local", "scripted") or (self.provider == "compat" and is_loopback(self.url))


def is_loopback(url: str) -> bool:
    """Whether an address leads to this machine.

    >>> is_loopback("http://127.0.0.1:8080/v1"), is_loopback("https://api.openai.com/v1")
    (True, False)
    """
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
