"""Experiments as files: a grid says what varies and what does not, and expands to runs with their factors."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

from foretell.data.datasets.rows import read_text
from foretell.questions.errors import InputError, known_names
from foretell.runs.spec import FORMER_NAMES, SAMPLING, RunSpec, parse_yaml, spec_from_mapping

GRID_FIELDS = ("name", "base", "factors", "also", "without", "budget")
SECTIONS = ("questions", "options", "models", "sampling", "prices", "budget")
"""Fields of a run that have subfields."""
SHORT = {"model": "models.agent"}
NONE = "none"
MOST_RUNS = 1_000
RunFactors = Mapping[str, str]
"""The level of each factor in a run; factors that do not apply are absent."""


@dataclass(frozen=True, kw_only=True)
class FactorLevel:
    """One value of a factor: its label and the run fields it sets."""

    label: str
    changes: Mapping[str, Any]
    """New values by dotted field."""


@dataclass(frozen=True, kw_only=True)
class GridFactor:
    """Something that varies: every level is combined with every level of the other factors."""

    name: str
    levels: tuple[FactorLevel, ...]


@dataclass(frozen=True, kw_only=True)
class GridRun:
    """One run of a grid."""

    name: str
    factors: RunFactors
    spec: RunSpec


@dataclass(frozen=True, kw_only=True)
class Grid:
    """An experiment: what all runs share, what varies, and extra runs outside the full cross."""

    name: str
    base: Mapping[str, Any]
    factors: tuple[GridFactor, ...]
    also: tuple[FactorLevel, ...] = ()
    """Extra runs, such as a baseline: each is the base with some fields changed."""
    without: tuple[RunFactors, ...] = ()
    """Combinations to leave out."""
    budget: float | None = None
    """Dollars for all runs together."""
    path: Path = field(default_factory=Path)

    def runs(self) -> tuple[GridRun, ...]:
        """Every run in the order of the file; duplicates are refused."""
        crossed = prod(len(factor.levels) for factor in self.factors) if self.factors else 0
        size = crossed + len(self.also)
        if size > MOST_RUNS:
            raise InputError(f"the grid has {size:,} runs", path=self.path, hint=f"at most {MOST_RUNS:,}")
        found, ids = list[GridRun](), dict[str, str]()
        for run in self._expanded():
            if run.spec.id in ids:
                problem = f"{run.name!r} and {ids[run.spec.id]!r} are the same run"
                raise InputError(problem, path=self.path, column="factors")
            ids[run.spec.id] = run.name
            found.append(run)
        if not found:
            raise InputError("the grid has no run", path=self.path, column="factors")
        return tuple(found)

    def _expanded(self) -> Iterator[GridRun]:
        for levels in itertools.product(*(factor.levels for factor in self.factors)) if self.factors else ():
            factors = {factor.name: level.label for factor, level in zip(self.factors, levels, strict=True)}
            if not any(all(factors.get(k) == v for k, v in out.items()) for out in self.without):
                yield self._run(run_name(factors), factors, levels)
        for one in self.also:
            given = {_short_name(path): level_label(value) for path, value in _spread(one.changes)}
            yield self._run(one.label or run_name(given), given, (one,))

    def _run(self, name: str, factors: RunFactors, levels: Sequence[FactorLevel]) -> GridRun:
        written = deepcopy(dict(self.base))
        for level in levels:
            for path, value in level.changes.items():
                _put(written, path, value)
        try:
            return GridRun(name=name, factors=factors, spec=spec_from_mapping(written))
        except InputError as error:
            raise InputError(f"{name}: {error}", path=self.path, column="factors") from None


def run_name(factors: RunFactors) -> str:
    """The name of a run in tables: its levels.

    >>> run_name({"rule": "linear", "leaves": "10"})
    'rule=linear leaves=10'
    """
    return " ".join(f"{name}={level}" for name, level in factors.items()) or "base"


def level_label(value: Any) -> str:
    """A field's value as tables show it.

    >>> level_label(["brave", "exa"]), level_label(True), level_label([])
    ('brave+exa', 'yes', 'none')
    """
    if value is None or value == [] or value == ():
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "+".join(level_label(one) for one in cast("Sequence[Any]", value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def field_path(name: str) -> str:
    """The dotted run field for a factor's name; an unknown name is an option of the forecaster.

    >>> field_path("rule"), field_path("model"), field_path("trials"), field_path("temperature")
    ('options.rule', 'models.agent', 'trials', 'sampling.temperature')
    """
    name = FORMER_NAMES.get(name, name)
    if name in SHORT:
        return SHORT[name]
    if name in {one.name for one in fields(RunSpec)} or name.partition(".")[0] in SECTIONS:
        return name
    return f"sampling.{name}" if name in SAMPLING else f"options.{name}"


def _short_name(path: str) -> str:
    back = {long: short for short, long in SHORT.items()}
    return back.get(path) or path.removeprefix("options.").removeprefix("sampling.")


def _spread(changes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields with their values, with sections flattened."""
    for path, value in changes.items():
        if isinstance(value, dict) and path in SECTIONS:
            yield from ((f"{path}.{name}", one) for name, one in cast("dict[str, Any]", value).items())
        else:
            yield path, value


def _put(written: dict[str, Any], path: str, value: Any) -> None:
    first, _, rest = path.partition(".")
    if not rest:
        written[first] = value
        return
    inner = written.get(first)
    if first == "questions" and isinstance(inner, str):
        inner = {"dataset": inner}
    written[first] = {**cast("dict[str, Any]", inner or {}), rest: value}


# Reading the file.


def read_grid(path: str | Path) -> Grid:
    """Read a YAML or JSON file. An unknown or wrong field raises an `InputError` that names it."""
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file)
    try:
        return grid_from_mapping(parse_yaml(read_text(file)), file)
    except InputError as error:
        raise error.at(path=file) from None


def grid_from_mapping(data: Any, path: Path) -> Grid:
    """A grid from a mapping as written by a user."""
    body = _mapping(data, "grid")
    for name in body:
        if name not in GRID_FIELDS:
            raise InputError("is not a field of a grid", column=name, hint=known_names(name, GRID_FIELDS))
    budget = body.get("budget")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float) or budget <= 0):
        raise InputError(f"{budget!r} is not an amount of dollars", column="budget")
    factors = tuple(_factor(name, given) for name, given in _mapping(body.get("factors") or {}, "factors").items())
    also = tuple(_single(one, n) for n, one in enumerate(_list(body.get("also") or [], "also"), 1))
    without = [_mapping(one, "without") for one in _list(body.get("without") or [], "without")]
    known = {factor.name: {level.label for level in factor.levels} for factor in factors}
    for out in without:
        for name, value in out.items():
            if level_label(value) not in known.get(name, set()):
                raise InputError(f"{name} has no level {level_label(value)!r}", column="without")
    return Grid(
        name=str(body.get("name") or path.stem),
        base=_mapping(body.get("base") or {}, "base"),
        factors=factors,
        also=also,
        without=tuple({name: level_label(value) for name, value in out.items()} for out in without),
        budget=None if budget is None else float(budget),
        path=path,
    )


def _factor(name: str, given: Any) -> GridFactor:
    column = f"factors.{name}"
    if isinstance(given, dict):
        # Levels with names of their own, each of which sets several fields.
        named = cast("dict[Any, Any]", given)
        levels = [FactorLevel(label=str(label), changes=_changes(one, column)) for label, one in named.items()]
    else:
        path = field_path(name)
        levels = [FactorLevel(label=level_label(one), changes={path: one}) for one in _list(given, column)]
    if not levels:
        raise InputError("has no level", column=column, hint="write a list of values")
    labels = [level.label for level in levels]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise InputError(f"has the level {twice[0]!r} twice", column=column)
    return GridFactor(name=name, levels=tuple(levels))


def _single(given: Any, number: int) -> FactorLevel:
    written = _mapping(given, f"also.{number}")
    return FactorLevel(label=str(written.pop("name", "")), changes=_changes(written, f"also.{number}"))


def _changes(given: Any, column: str) -> dict[str, Any]:
    return {field_path(name): value for name, value in _mapping(given or {}, column).items()}


def _mapping(given: Any, column: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InputError(f"expected fields with values, found {str(given)[:40]!r}", column=column)
    return {str(name): value for name, value in cast("dict[Any, Any]", given).items()}


def _list(given: Any, column: str) -> list[Any]:
    if not isinstance(given, list):
        raise InputError(f"expected a list, found {str(given)[:40]!r}", column=column)
    return cast("list[Any]", given)


# The factors of runs that no grid made: the fields in which they differ.

NO_FACTOR = ("budget", "prices", "efforts", "questions.digest", "strict")
"""Fields that do not affect a run's own forecasts."""


def factors_of_specs(specs: Mapping[str, RunSpec]) -> dict[str, dict[str, str]]:
    """The fields in which runs differ, by run name. Unstated options have their defaults.

    >>> from foretell.runs.spec import QuestionsSpec
    >>> one = RunSpec(questions=QuestionsSpec(dataset="demo"), forecaster="prior")
    >>> factors_of_specs({"a": one, "b": RunSpec(questions=one.questions, forecaster="prior", seed=1)})
    {'a': {'seed': '0'}, 'b': {'seed': '1'}}
    """
    flat = {name: _flat(spec) for name, spec in specs.items()}
    paths = dict.fromkeys(path for one in flat.values() for path in one)
    varying = [path for path in paths if len({one.get(path) for one in flat.values()}) > 1]
    return {name: {_short_name(path): one[path] for path in varying if path in one} for name, one in flat.items()}


def _flat(spec: RunSpec) -> dict[str, str]:
    from foretell.forecasters.forecaster import current_options, make_forecaster
    from foretell.runs.runtime import forecaster_name, forecaster_options

    written = asdict(spec)
    try:
        made = make_forecaster(forecaster_name(spec), forecaster_options(spec))
        usual = asdict(made) if is_dataclass(made) and not isinstance(made, type) else {}
        given = current_options(forecaster_name(spec), written["options"])
    except (InputError, TypeError):
        usual, given = {}, written["options"]
    written["options"] = {**{k: v for k, v in usual.items() if _plain(v)}, **given}
    found: dict[str, str] = {}
    for name, value in written.items():
        inner = cast("dict[str, Any]", value) if isinstance(value, dict) else None
        for path, one in ((f"{name}.{key}", v) for key, v in inner.items()) if inner is not None else ((name, value),):
            if path not in NO_FACTOR and name not in NO_FACTOR:
                found[path] = level_label(one)
    return found


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | list | tuple)
