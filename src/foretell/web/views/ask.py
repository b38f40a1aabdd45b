"""Asking: what this machine can do with a question, and the form for it."""

from dataclasses import dataclass

from foretell.operations.requests import AskRequest
from foretell.request import environment_values
from foretell.runs.services import SEARCH_ENGINES
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import COMBINATIONS
from foretell.web.forms import FormField, form_fields
from foretell.web.views.home import MODEL_PROVIDERS


@dataclass(frozen=True, kw_only=True)
class AskView:
    """What this machine can do with a question."""

    providers: tuple[str, ...]
    """Providers of models that there is a key for."""
    missing: tuple[str, ...]
    """Environment variables that would bring one."""
    engines: tuple[str, ...]
    """Search engines that can be used."""
    model: str
    search: tuple[str, ...]
    """What is chosen unless somebody chooses otherwise."""
    fields: tuple[FormField, ...]
    """Everything that can be said about a question and its answering."""


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """A run that was started in the background."""

    run: str
    question: str
    due: str
    warnings: tuple[str, ...]


def usable_engines(settings: Settings) -> tuple[str, ...]:
    """Search engines that keys and corpora allow."""
    usable = {"gdelt", *(("local",) if settings.corpus.exists() else ()), *settings.services}
    return tuple(engine for engine in SEARCH_ENGINES if engine in usable)


def ask_view(settings: Settings) -> AskView:
    """What keys and corpora allow."""
    providers = tuple(name for name in MODEL_PROVIDERS if name in settings.services)
    engines, chosen = usable_engines(settings), environment_values(AskRequest)
    combine = ("default", *(name for name in COMBINATIONS if name != "default"))
    return AskView(
        providers=providers,
        missing=tuple(KEYS[name][0] for name in MODEL_PROVIDERS if name not in providers),
        engines=engines,
        model=chosen.get("model", ""),
        search=chosen.get("search", ()),
        fields=form_fields(AskRequest, choices={"search": engines, "combine": combine}),
    )
