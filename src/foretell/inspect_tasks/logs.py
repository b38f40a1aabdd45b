"""Read forecasts and outcomes from Inspect samples and logs, both of our tasks and of others."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foretell.forecasters.prompt.elicitation import NO, YES, OutcomeNames, read_probabilities
from foretell.frozen import frozen
from foretell.models.structured_output import NoJsonFound, UnusableReply, read_json
from foretell.patterns import pattern
from foretell.questions.codec import from_json
from foretell.questions.errors import InputError, MissingExtra
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.report.result import Result
from foretell.scoring.long_tables import Row, outcome_rows, write_rows

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

# One sample.

QUESTION_KEY = "foretell_question"
"""Metadata key of a sample for the complete question as JSON."""
CLUSTER_KEY = "question"
"""Metadata key of the cluster: samples about the same question or from the same group of questions are correlated."""
ONLY = "yes"
"""Target id used for questions from other tasks."""
NAMES = ("probability", "p", "probabilities", "prediction", "forecast", "answer")
_LAST_WORDS = pattern(
    r"(?:probability|forecast|answer|estimate|prediction)\b[^0-9\n]{0,40}?(\d+(?:\.\d+)?|\.\d+)\s*(%?)[^0-9]*\Z", re.I
)
_NUMBER = pattern(r"\s*\**\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*\**\s*\.?\s*")


def question_in(metadata: Mapping[str, Any] | None) -> Question | None:
    """Return the question of a sample from one of our tasks; None for other samples."""
    text = (metadata or {}).get(QUESTION_KEY)
    return from_json(text, Question) if isinstance(text, str) else None


def outcomes_of(target: str) -> dict[str, int]:
    """Parse the outcomes in a sample's target: JSON in our samples, yes or no in others. Raises `UnusableReply`.

    >>> outcomes_of('{"A": 1, "B": 0}'), outcomes_of("No"), outcomes_of("1.0")
    ({'A': 1, 'B': 0}, {'yes': 0}, {'yes': 1})
    """
    word = target.strip().casefold()
    if word in YES | {"1.0"}:
        return {ONLY: 1}
    if word in NO | {"0.0"}:
        return {ONLY: 0}
    try:
        value = json.loads(target)
    except ValueError:
        value = None
    entries = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if not entries or any(value not in (0, 1) for value in entries.values()):
        raise UnusableReply(f"the target {target[:40]!r} is neither yes nor no")
    return {name: int(value) for name, value in entries.items()}


def probabilities_in(text: str, metadata: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Parse one probability per target; raises `UnusableReply` rather than guess.

    >>> probabilities_in("I weighed both sides.  Probability: 37%"), probabilities_in('{"p": 0.2}')
    ({'yes': 0.37}, {'yes': 0.2})
    """
    question = question_in(metadata)
    if question is None:
        return {ONLY: _alone(text)}
    try:
        reply = read_json(text)
    except NoJsonFound as error:
        if len(question.targets) == 1:
            return {question.targets[0].id: _in_words(text, str(error))}
        raise UnusableReply(str(error)) from None
    if not isinstance(reply, dict):
        raise UnusableReply("the answer is not a JSON object")
    return dict(read_probabilities(cast("dict[str, Any]", reply), OutcomeNames.of(question)).p)


def complete(p: dict[str, float], outcomes: Mapping[str, int]) -> dict[str, float]:
    """Return `p` if it has a probability for every target with an outcome; raise `UnusableReply` otherwise."""
    if missing := outcomes.keys() - p.keys():
        raise UnusableReply(f"no probability for {min(missing)}")
    return p


def _alone(text: str) -> float:
    """Parse the probability of yes from a reply in any format."""
    try:
        reply = read_json(text)
    except NoJsonFound as error:
        return _in_words(text, str(error))
    fields = cast("dict[str, Any]", reply) if isinstance(reply, dict) else {}
    answer = next((fields[name] for name in NAMES if name in fields), None)
    if isinstance(answer, dict):
        answer = next((part for name, part in cast("dict[str, Any]", answer).items() if name.casefold() == ONLY), None)
    return _probability(str(answer), "the JSON has no probability")


def _in_words(text: str, problem: str) -> float:
    """Parse a number that is the whole text, the whole last line, or at the end after a word such as "Probability"."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for candidate in (text.strip(), lines[-1] if lines else ""):
        if _NUMBER.fullmatch(candidate):
            return _probability(candidate, problem)
    match = _LAST_WORDS.search(text.strip())
    if match is None:
        raise UnusableReply(problem)
    return _probability(f"{match[1]}{match[2]}", problem)


def _probability(text: str, problem: str) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnusableReply(problem)
    number = float(match[1]) / (100 if match[2] else 1)
    if not 0 <= number <= 1:
        raise UnusableReply(f"{text.strip()[:40]} is not a probability; write a number from 0 to 1, or a percentage")
    return number


# Whole logs, as tables of forecasts and outcomes.

UNNEEDED = {"messages", "events", "store", "attachments"}
"""Large fields of a sample that are not loaded because they are not needed."""


@frozen
class LoggedForecasts(Result):
    """Forecasts and outcomes from logs, in the format of `foretell score`."""

    forecasts: tuple[Row, ...]
    outcomes: tuple[Row, ...]
    failures: tuple[Row, ...]
    """Samples without a forecast, each with the reason."""

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
        return (f"{len(self.failures)} samples have no forecast, e.g. {first['question']}: {first['error']}",)

    def to_dict(self) -> Any:
        """Return the counts and the failures."""
        counts = {"forecasts": len(self.forecasts), "outcomes": len(self.outcomes)}
        return counts | {"failures": list(self.failures)}

    def __str__(self) -> str:
        return f"{len(self.forecasts)} forecasts, {len(self.outcomes)} outcomes"


def read_inspect_log(path: str | Path, *, name: str | None = None) -> LoggedForecasts:
    """Read an Inspect log, or all logs of a folder, as tables of forecasts and outcomes for `score`.

    Epochs are trials. Logs of `foretell/questions` contain their questions. From other tasks, only samples are read
    whose target is yes or no and whose answer ends in a probability.

    Args:
        path: A file (.eval or .json), or a folder of them.
        name: The name of the forecaster, if it is not that of the model.

    Returns:
        A `LoggedForecasts` with `forecasts`, `outcomes` and `failures`.

    Raises:
        InputError: If there is no such file, it is no log, or no sample contains a forecast.
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
    p = complete(_scored_probabilities(sample) or probabilities_in(sample.output.completion, sample.metadata), outcomes)
    question = question_in(sample.metadata)
    if question is None:
        cluster = sample.metadata.get(CLUSTER_KEY) or sample.metadata.get("cluster") or sample.id
        plain = {"question": str(sample.id), "cluster": str(cluster)}
        happened: list[Row] = [{**plain, "target": name, "outcome": outcome} for name, outcome in outcomes.items()]
    else:
        shared: dict[str, Any] = {"question_id": question.id, "due": question.due}
        resolutions = [Resolution(target_id=name, outcome=outcome, **shared) for name, outcome in outcomes.items()]
        happened = outcome_rows([question], resolutions)
    where = {(row["question"], row["target"]): row for row in happened}
    question_id = question.id if question is not None else str(sample.id)
    stated = [
        {
            "forecaster": who,
            "question": question_id,
            "target": name,
            **({"due": where[question_id, name]["due"]} if question is not None else {}),
            "trial": sample.epoch - 1,
            "p": value,
        }
        for name, value in p.items()
        if (question_id, name) in where
    ]
    return stated, happened


def _scored_probabilities(sample: "EvalSample") -> dict[str, float] | None:
    """Return the probabilities that one of our scorers parsed when the sample was scored; None if there are none."""
    for score in (sample.scores or {}).values():
        p: Any = (score.metadata or {}).get("p")
        if isinstance(p, Mapping) and p:
            return {str(name): float(value) for name, value in cast("Mapping[Any, Any]", p).items()}
    return None
