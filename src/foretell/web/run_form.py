"""The form that starts a run: its questions, its usual settings as fields, and the same spec as YAML beside them."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import yaml

from foretell.data.datasets.question_files import READERS
from foretell.data.files import write_atomically
from foretell.data.untrusted import for_file_name
from foretell.operations.requests.data import SET_HELP, ListingFields
from foretell.questions.codec import parse_yaml
from foretell.questions.errors import InputError
from foretell.request import OperationRequest, setting
from foretell.runs.set_names import find_set
from foretell.runs.settings import Settings
from foretell.runs.spec import with_settings

SETTING_OF: Mapping[str, str] = {
    "model": "models.agent",
    "forecaster": "forecaster",
    "search": "search",
    "trials": "trials",
    "budget": "budget.run",
}
"""Field of the form → the setting of the spec that it is."""


class PickedSet(ListingFields):
    """A question set by name and the part of it to use: the `questions` of a spec, chosen in a form."""

    dataset: str = setting("", SET_HELP, title="Question set", max_length=300)
    again: float | None = setting(
        None, "Ask what a market lists anew after so many days.", gt=0, title="Ask again after days"
    )

    def spec(self, rest: Any) -> Any:
        """Return the run's spec; `rest` is the spec without its questions, or the whole spec if no set is picked."""
        if not self.dataset:
            if changed := self.wanted().changed():
                raise InputError("no question set is picked", column="dataset", hint=f"{next(iter(changed))} needs one")
            return rest
        spec = _mapping(rest)
        if "questions" in spec:
            raise InputError(
                "questions are picked above and also written here", column="spec", hint="leave one of them out"
            )
        # The questions of a market are only known live.
        mode = {"mode": "live"} if find_set(self.dataset).kind == "markets" else {}
        return {**mode, **spec, "questions": {"dataset": self.dataset, **self.wanted().changed()}}


class UsualSettings(OperationRequest):
    """The settings of a run that most people change."""

    model: str = setting("", "Model of the agent as PROVIDER:NAME; empty for a forecaster without one.", max_length=300)
    forecaster: str = setting("", "How questions are answered; by default reason, or model_free without a model.")
    search: tuple[str, ...] = setting((), "Search engines of the agent.", title="Search with")
    trials: int | None = setting(None, "Independent answers to each question.", ge=1)
    budget: float | None = setting(None, "Maximum cost of the run in dollars.", gt=0, title="Budget in dollars")

    def spec(self, written: str) -> dict[str, Any]:
        """Return the spec that fields and YAML state together; raises InputError if they contradict each other."""
        spec = _mapping(parse_yaml(written))
        for name, path in SETTING_OF.items():
            value = getattr(self, name)
            value = list(value) if isinstance(value, tuple) else value
            if not value:
                continue
            if _value_of(spec, path) not in (None, value):
                raise InputError(f"{path} in the YAML says otherwise", column=name, hint="empty one of them")
            spec = with_settings(spec, {path: value})
        if "forecaster" not in spec and _value_of(spec, "models.agent") is None:
            spec["forecaster"] = "model_free"
        return spec


def form_of_spec(spec: Mapping[str, Any], engines: Sequence[str]) -> dict[str, Any]:
    """Return the values of the form's fields for a spec; what has no field stays in the YAML, as `spec`.

    The form offers these search engines; a spec with another one keeps its `search` in the YAML.
    """
    values: dict[str, Any] = {}
    rest = dict(spec)
    for name, path in SETTING_OF.items():
        value = _value_of(rest, path)
        if value is not None and (name != "search" or {*value} <= {*engines}):
            values[name] = value
            rest = {key: part for key, part in with_settings(rest, {path: None}).items() if part != {}}
    questions = rest.get("questions")
    picked: Mapping[str, Any] = {"dataset": questions} if isinstance(questions, str) else questions or {}
    if picked and picked.keys() <= PickedSet.model_fields.keys():
        values |= picked
        del rest["questions"]
    return {**values, "spec": as_yaml(rest)}


def as_yaml(spec: Mapping[str, Any]) -> str:
    """Return a spec as people write it."""
    return yaml.safe_dump(dict(spec), sort_keys=False, allow_unicode=True) if spec else ""


def _mapping(spec: Any) -> dict[str, Any]:
    if spec is not None and not isinstance(spec, dict):
        raise InputError("write NAME: VALUE in each line", column="spec")
    return dict(cast("dict[str, Any]", spec or {}))


def _value_of(spec: Mapping[str, Any], path: str) -> Any:
    name, _, inner = path.partition(".")
    value: Any = spec.get(name)
    return cast("Mapping[str, Any]", value).get(inner) if inner and isinstance(value, Mapping) else value


def keep_questions(settings: Settings, files: Sequence[tuple[str, bytes]], text: str) -> str:
    """Store questions that were sent as a file or as text in the home; return the path, or "" if there are none.

    Text is a table with a heading, or a question in each line.
    """
    sent = [*files, *([_typed(text)] if text.strip() else [])]
    if not sent:
        return ""
    if len(sent) > 1:
        raise InputError("questions are sent twice", column="file", hint="send one file, or type them")
    name, content = sent[0]
    if (ending := Path(name).suffix.lower()) not in READERS:
        raise InputError(f"{name[-40:]} is not a file of questions", column="file", hint=", ".join(sorted(READERS)))
    stem = for_file_name(Path(name).stem)
    path = settings.home / "questions" / sha256(content).hexdigest()[:12] / f"{stem}{ending}"
    write_atomically(path, content)
    return str(path)


def _typed(text: str) -> tuple[str, bytes]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "text" in [cell.strip() for cell in lines[0].split(",")]:
        return "typed.csv", text.strip().encode()
    return "typed.jsonl", "".join(json.dumps({"text": line}) + "\n" for line in lines).encode()
