"""List models with prices, capabilities and their record here, and install newer tables of models."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.frozen import frozen
from foretell.models.facts import FactTable, ModelFacts, facts_of, forget_facts, known_facts, parse_facts
from foretell.models.journal import Journal
from foretell.models.model import ModelSettings
from foretell.models.names import ModelName, default_effort, is_loopback
from foretell.models.prices import PriceList
from foretell.models.providers.loading import load_provider
from foretell.number_text import dollars
from foretell.operations.requests.setup import ModelsListRequest
from foretell.questions.errors import InputError
from foretell.report.result import Result
from foretell.report.terminal import TextColumn, show_text, text_table
from foretell.runs.settings import CHECKED_MODELS, KNOWN_MODELS, Settings, load_settings
from foretell.runs.store import RunStore
from foretell.scoring.stored_scores import StoredScores

if TYPE_CHECKING:
    from rich.console import Console

# The list.

NO_MODEL_LISTED = (
    "No known model matches. Set the key of a provider, such as OPENAI_API_KEY, or use a model on this machine: "
    "--model compat:NAME@http://localhost:11434/v1 or --model local:PATH.gguf."
)


@frozen
class ModelsResult(Result):
    """Known models and models used here, the usable ones first."""

    lines = "models"
    models: tuple[dict[str, Any], ...]
    dates: tuple[str, ...]
    """Dates of the tables they come from."""
    missing_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Provider → the variable that would hold its key."""
    installed: str = ""
    """What was installed before listing."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """How old the list is, and which keys are missing."""
        keys = [f"{provider}: set {variable}" for provider, variable in self.missing_keys.items()]
        notes = [f"facts and prices as of {', '.join(self.dates)}; foretell models list --update installs newer ones"]
        installed = [self.installed] if self.installed else []
        return (*installed, *notes, *([f"no key for {'; '.join(keys)}"] if keys else []))

    def print(self, console: "Console") -> None:
        """Print a table, with the reasoning efforts of each model from least to most, and what it cost here."""
        columns = (
            TextColumn(head="model", shrink=20),
            TextColumn(head="usable", drop=1),
            TextColumn(head="$ in/out per M", right=True),
            TextColumn(head="knows to"),
            TextColumn(head="agent/filter", drop=2),
            TextColumn(head="can think"),
            TextColumn(head="spent here", right=True, drop=3),
        )
        rows = list[tuple[str, ...]]()
        for row in self.models:
            price = "-" if row["input"] is None else f"{row['input']:g}/{row['output']:g}"
            chosen = f"{row['agent'] or '-'}/{row['filter'] or '-'}"
            efforts = row["efforts"].split() or ["-"]
            thinks = " to ".join(dict.fromkeys((efforts[0], efforts[-1])))
            usable = "yes" if row["usable"] else "no"
            spent = ("unknown" if row["dollars"] is None else dollars(row["dollars"])) if row["calls"] else "-"
            rows.append((row["model"], usable, price, row["cutoff"] or "-", chosen, thinks, spent))
        if not rows:
            show_text(console, f"{NO_MODEL_LISTED}\n")
            return
        used = any(row["calls"] for row in self.models)
        shown = columns if used else columns[:-1]
        show_text(console, f"{text_table(shown, [row[: len(shown)] for row in rows], console.width)}\n")


async def show_models(request: ModelsListRequest, settings: Settings | None = None) -> ModelsResult:
    """List the known models, after installing a newer table of them if the request names one."""
    settings = settings or load_settings()
    installed = "" if request.update is None else await install_models(request.update, settings)
    return replace(list_models(request, settings), installed=installed)


def list_models(
    request: ModelsListRequest, settings: Settings | None = None, records: "ModelRecords | None" = None
) -> ModelsResult:
    """List the known models and those used here: price, cutoff, capabilities, cost so far and score."""
    settings = settings or load_settings()
    tables = known_facts(settings.home / CHECKED_MODELS, settings.home / KNOWN_MODELS)
    records = model_records(settings) if records is None else records
    known: dict[str, ModelFacts] = {}
    for entry in (entry for table in tables for entry in table.models if entry.name):
        known.setdefault(entry.name, entry)
    missing: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for model in dict.fromkeys([*known, *records]):
        try:
            name = ModelName.read(model)
        except InputError:  # From a plugin that is no longer installed.
            continue
        provider = load_provider(name.provider)
        has_key = any(settings.keys.get(variable) for variable in provider.key_variables)
        usable = has_key or not (provider.key_required and provider.key_variables)
        if not usable and model in known:
            missing.setdefault(name.provider, provider.key_variables[0])
        wanted = request.provider in (None, name.provider) and request.find.casefold() in model.casefold()
        if wanted and (usable or not request.usable):
            row = _row(model, known.get(model) or facts_of(name.name), usable)
            rows.append({**row, **records.get(model, UNUSED)})
    dates = tuple(dict.fromkeys(table.date.isoformat() for table in tables))
    ordered = tuple(sorted(rows, key=lambda row: (not row["usable"], not row["calls"])))
    return ModelsResult(models=ordered, dates=dates, missing_keys=missing)


def _row(model: str, entry: ModelFacts, usable: bool) -> dict[str, Any]:
    price = PriceList().of(model)
    return {
        "model": model,
        "usable": usable,
        "input": price.input if price else None,
        "cached": price.cached if price else None,
        "output": price.output if price else None,
        "cutoff": entry.cutoff.isoformat() if entry.cutoff else None,
        "ends": entry.ends.isoformat() if entry.ends else None,
        "max_output": entry.max_output,
        "efforts": " ".join(entry.efforts),
        # The default effort: what foretell requests, else the model's own default.
        "agent": default_effort(model, "agent", ModelSettings()) or entry.default,
        "filter": default_effort(model, "filter", ModelSettings()) or entry.default,
        "tiers": " ".join(load_provider(ModelName.read(model).provider).tiers),
        "tool_choice": entry.force,
        "schema": entry.schema,
        "temperature": entry.sampling,
    }


UNUSED: Mapping[str, Any] = {"calls": 0, "dollars": 0.0, "runs": 0, "resolved": 0, "brier_index": None}
"""The record of a model that was never used here."""


ModelRecords = Mapping[str, Mapping[str, Any]]


def model_records(settings: Settings) -> ModelRecords:
    """Return by model: replies and dollars from the journal; as the agent, its runs and their mean Brier index.

    The mean is weighted by resolved questions. Dollars are None if the price of a reply is not known.
    """
    records_by_model: dict[str, dict[str, Any]] = {}
    if settings.database or Path(settings.journal).is_file():
        with closing(Journal(settings.journal)) as journal:
            for model, cost in journal.spent().items():
                records_by_model[model] = {
                    **UNUSED,
                    "calls": cost.calls,
                    "dollars": None if cost.unpriced else cost.dollars,
                }
    if settings.database or Path(settings.store).is_file():
        with closing(RunStore(settings.store)) as store:
            rows = [row for row in store.runs() if row.spec.get("models", {}).get("agent")]
            scores = StoredScores(store).of(rows)
        for row in rows:
            record = records_by_model.setdefault(row.spec["models"]["agent"], dict(UNUSED))
            record["runs"] += 1
            if scores[row.id]["brier_index"]:
                before, more = record["resolved"], scores[row.id]["decided"]
                total = (record["brier_index"] or 0.0) * before + scores[row.id]["brier_index"]["estimate"] * more
                record |= {"resolved": before + more, "brier_index": total / (before + more)}
    return records_by_model


# Newer tables of models.


LARGEST_TABLE = 2_000_000
"""Maximum size in bytes."""


async def install_models(source: str, settings: Settings) -> str:
    """Install a table of models in the home, where it takes precedence over the package's own; return what it is.

    `source` is a file or an https address. Raises InputError if it cannot be read or holds no model.
    """
    from foretell.data.files import write_atomically

    content = await _downloaded(source, settings) if "://" in source else _read(Path(source))
    table: FactTable = parse_facts(content, source)
    if not table.models:
        raise InputError("the table has no models", path=source, hint="entries begin with [[model]]")
    path = settings.home / KNOWN_MODELS
    write_atomically(path, content)
    forget_facts()
    return f"{len(table.models)} entries as of {table.date.isoformat()} installed in {path}"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the table of models cannot be read: {error}", path=path) from None


async def _downloaded(url: str, settings: Settings) -> bytes:
    """Download a table over https."""
    from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError

    async def admit(address: str) -> None:
        if not address.startswith("https://") and not is_loopback(address):
            raise InputError(
                "tables are only downloaded over https", path=address, hint="give an https address or a file"
            )

    limits = HttpLimits(total_seconds=60.0, max_bytes=LARGEST_TABLE)
    async with AsyncHttpClient(limits=limits, access=settings.access) as client:
        try:
            return (await client.get(url, admit=admit)).body
        except SourceError as error:
            raise InputError(f"the table of models cannot be read: {error.problem}", path=url) from None
