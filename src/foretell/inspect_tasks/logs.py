"""Convert Inspect logs to tables of forecasts and outcomes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foretell.inspect_tasks.samples import CLUSTER_KEY, outcomes_of, probabilities_in, question_in
from foretell.models.structured_output import UnusableReply
from foretell.operations.requests.data import InspectLogRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError, MissingExtra
from foretell.questions.resolution import Resolution
from foretell.scoring.long_tables import Row, outcome_rows, write_rows

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

UNNEEDED = {"messages", "events", "store", "attachments"}
"""Large fields of a sample that are not loaded because they are not needed."""


@dataclass(frozen=True, kw_only=True)
class LoggedForecasts(Result):
    """Forecasts and outcomes from logs, in the format of `foretell score`."""

    forecasts: tuple[Row, ...]
    outcomes: tuple[Row, ...]
    failures: tuple[Row, ...]
    """Samples without a forecast, each with the reason."""
    tables: tuple[Path, ...] = ()
    """The files that were written."""

    def write(self, folder: Path) -> list[Path]:
        """Write forecasts.csv, outcomes.csv and, if there are failures, failures.csv; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        tables = {"forecasts": self.forecasts, "outcomes": self.outcomes, "failures": self.failures}
        return [write_rows(rows, folder / f"{name}.csv") for name, rows in tables.items() if rows]

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning that counts the samples without a forecast; empty if there are none."""
        if not self.failures:
            return ()
        first = self.failures[0]
        return (f"{len(self.failures)} samples hold no forecast, e.g. {first['question']}: {first['error']}",)

    def to_dict(self) -> Any:
        """Return the counts, the failures and the files written."""
        counts = {"forecasts": len(self.forecasts), "outcomes": len(self.outcomes)}
        return counts | {"failures": list(self.failures), "tables": [str(path) for path in self.tables]}

    def __str__(self) -> str:
        return "\n".join(f"Wrote {path}" for path in self.tables) or f"{len(self.forecasts)} forecasts"


def convert_log(request: InspectLogRequest) -> LoggedForecasts:
    """Write the forecasts and outcomes of logs as the tables that `foretell score` reads."""
    found = read_inspect_log(request.log, name=request.name)
    return replace(found, tables=tuple(found.write(request.folder)))


def read_inspect_log(path: str | Path, *, name: str | None = None) -> LoggedForecasts:
    """Read an Inspect log (.eval or .json), or all logs of a folder, as tables for `foretell score`.

    The forecaster is the model, or `name`; epochs are trials. Logs of `foretell/questions` contain their questions.
    From other tasks, only samples are read whose target is yes or no and whose answer ends in a probability.
    """
    forecasts: list[Row] = []
    failures: list[Row] = []
    outcomes: dict[tuple[str, str, str], Row] = {}
    for log in _logs(Path(path)):
        for sample in log.samples or ():
            who = name or str(log.eval.model)
            try:
                stated, happened = _sample(sample, who)
            except UnusableReply as problem:
                failures.append({"forecaster": who, "question": str(sample.id), "error": str(problem)})
                continue
            forecasts += stated
            outcomes |= {(row["question"], row["target"], str(row.get("due"))): row for row in happened}
    if not forecasts:
        reason = f": {failures[0]['error']}" if failures else ""
        raise InputError(f"no sample contains a forecast{reason}", path=path)
    # All rows with the same columns, as a table needs them.
    columns = dict.fromkeys(column for row in outcomes.values() for column in row)
    rows = tuple({column: row.get(column) for column in columns} for row in outcomes.values())
    return LoggedForecasts(forecasts=tuple(forecasts), outcomes=rows, failures=tuple(failures))


def _logs(path: Path) -> "Iterator[EvalLog]":
    if find_spec("inspect_ai") is None:
        raise MissingExtra("reading an Inspect log", "inspect")
    from inspect_ai.log import read_eval_log

    if not path.exists():
        raise InputError("no such file", path=path)
    files = sorted(file for ending in ("*.eval", "*.json") for file in path.glob(ending)) if path.is_dir() else [path]
    if not files:
        raise InputError("the folder contains no log", path=path, hint="Inspect's logs end in .eval or .json")
    for file in files:
        try:
            yield read_eval_log(str(file), exclude_fields=UNNEEDED)
        except (ValueError, KeyError, OSError) as error:
            raise InputError(f"cannot be read as an Inspect log: {str(error)[:200]}", path=file) from None


def _sample(sample: "EvalSample", who: str) -> tuple[list[Row], list[Row]]:
    """Return the forecast rows and the outcome rows of one sample; raise `UnusableReply` if it has none."""
    if sample.error is not None:
        raise UnusableReply(f"the sample failed: {sample.error.message[:200]}")
    target = sample.target if isinstance(sample.target, str) else next(iter(sample.target), "")
    outcomes = outcomes_of(target)
    p = _scored_probabilities(sample) or probabilities_in(sample.output.completion, sample.metadata)
    question = question_in(sample.metadata)
    if question is None:
        cluster = sample.metadata.get(CLUSTER_KEY) or sample.metadata.get("cluster") or sample.id
        plain = {"question": str(sample.id), "cluster": str(cluster)}
        happened: list[Row] = [{**plain, "target": name, "outcome": one} for name, one in outcomes.items()]
    else:
        known: dict[str, Any] = {"question_id": question.id, "due": question.due}
        resolutions = [Resolution(target_id=name, outcome=one, **known) for name, one in outcomes.items()]
        happened = outcome_rows([question], resolutions)
    where = {(row["question"], row["target"]): row for row in happened}
    asked = question.id if question is not None else str(sample.id)
    stated = [
        {
            "forecaster": who,
            "question": asked,
            "target": name,
            **({"due": where[asked, name]["due"]} if question is not None else {}),
            "trial": sample.epoch - 1,
            "p": value,
        }
        for name, value in p.items()
        if (asked, name) in where
    ]
    return stated, happened


def _scored_probabilities(sample: "EvalSample") -> dict[str, float] | None:
    """Return the probabilities that one of our scorers parsed when the sample was scored; None if there are none."""
    for score in (sample.scores or {}).values():
        found: Any = (score.metadata or {}).get("p")
        if isinstance(found, Mapping) and found:
            return {str(name): float(value) for name, value in cast("Mapping[Any, Any]", found).items()}
    return None
