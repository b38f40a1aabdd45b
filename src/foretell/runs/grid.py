"""Grids: files that describe an experiment by what varies, and expand to runs with their factors."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, field, fields, is_dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, cast

from foretell.data.datasets.rows import read_text
from foretell.frozen import frozen
from foretell.questions.codec import parse_yaml
from foretell.questions.errors import InputError, known_names
from foretell.runs.spec import FORMER_NAMES, SAMPLING, RunSpec, read_changes, spec_from_mapping, with_settings

GRID_FIELDS = ("name", "base", "factors", "also", "without", "budget")
SECTIONS = ("questions", "options", "models", "sampling", "prices", "budget")
"""Fields of a run that have subfields."""
SHORT = {"model": "models.agent"}
NONE = "none"
MOST_RUNS = 1_000
RunFactors = Mapping[str, str]
"""The level of each factor in a run; factors that do not apply are absent."""


@frozen
class FactorLevel:
    """One value of a factor: its label and the run fields it sets."""

    label: str
    changes: Mapping[str, Any]
    """New values by dotted field."""


@frozen
class GridFactor:
    """A factor. Every level is combined with every level of the other factors."""

    name: str
    levels: tuple[FactorLevel, ...]


@frozen
class GridRun:
    """One run of a grid."""

    name: str
    factors: RunFactors
    spec: RunSpec


@frozen
class Grid:
    """An experiment: the fields that all runs share, the factors, and extra runs."""

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
        """Return every run in the order of the file. Raises `InputError` if two are the same."""
        combinations = prod(len(factor.levels) for factor in self.factors) if self.factors else 0
        size = combinations + len(self.also)
        if size > MOST_RUNS:
            raise InputError(f"the grid has {size:,} runs", path=self.path, hint=f"at most {MOST_RUNS:,}")
        runs, ids = list[GridRun](), dict[str, str]()
        for run in self._expanded():
            if run.spec.id in ids:
                problem = f"{run.name!r} and {ids[run.spec.id]!r} are the same run"
                raise InputError(problem, path=self.path, column="factors")
            ids[run.spec.id] = run.name
            runs.append(run)
        if not runs:
            raise InputError("the grid has no run", path=self.path, column="factors")
        return tuple(runs)

    def _expanded(self) -> Iterator[GridRun]:
        for levels in itertools.product(*(factor.levels for factor in self.factors)) if self.factors else ():
            factors = {factor.name: level.label for factor, level in zip(self.factors, levels, strict=True)}
            if not any(all(factors.get(k) == v for k, v in out.items()) for out in self.without):
                yield self._run(run_name(factors), factors, levels)
        for extra in self.also:
            factors = {_short_name(path): level_label(value) for path, value in _spread(extra.changes)}
            yield self._run(extra.label or run_name(factors), factors, (extra,))

    def _run(self, name: str, factors: RunFactors, levels: Sequence[FactorLevel]) -> GridRun:
        settings = deepcopy(dict(self.base))
        for level in levels:
            for path, value in level.changes.items():
                _put(settings, path, value)
        try:
            return GridRun(name=name, factors=factors, spec=spec_from_mapping(settings))
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
        return "+".join(level_label(item) for item in cast("Sequence[Any]", value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def field_path(name: str) -> str:
    """The dotted run field for a factor's name; an unknown name is an option of the forecaster.

    >>> field_path("rule"), field_path("model"), field_path("trials"), field_path("temperature")
    ('options.rule', 'models.agent', 'trials', 'sampling.temperature')
    """
    name = FORMER_NAMES.get(name, name)
    if name in SHORT:
        return SHORT[name]
    if name in {part.name for part in fields(RunSpec)} or name.partition(".")[0] in SECTIONS:
        return name
    return f"sampling.{name}" if name in SAMPLING else f"options.{name}"


def _short_name(path: str) -> str:
    back = {long: short for short, long in SHORT.items()}
    return back.get(path) or path.removeprefix("options.").removeprefix("sampling.")


def _spread(changes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields with their values, with sections flattened."""
    for path, value in changes.items():
        if isinstance(value, dict) and path in SECTIONS:
            yield from ((f"{path}.{name}", inner) for name, inner in cast("dict[str, Any]", value).items())
        else:
            yield path, value


def _put(settings: dict[str, Any], path: str, value: Any) -> None:
    first, _, rest = path.partition(".")
    if not rest:
        settings[first] = value
        return
    inner = settings.get(first)
    if first == "questions" and isinstance(inner, str):
        inner = {"dataset": inner}
    settings[first] = {**cast("dict[str, Any]", inner or {}), rest: value}


# Reading the file.


def read_grid(path: str | Path, changes: Mapping[str, Any] | None = None) -> Grid:
    """Read a YAML or JSON file, with `changes` to its base. A wrong field raises an `InputError` that names it."""
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file)
    try:
        grid = grid_from_mapping(parse_yaml(read_text(file)), file)
    except InputError as error:
        raise error.at(path=file) from None
    return replace(grid, base=with_settings(grid.base, read_changes(changes))) if changes else grid


def grid_from_mapping(data: Any, path: Path) -> Grid:
    """Return a grid from a mapping as written by a user."""
    body = _mapping(data, "grid")
    for name in body:
        if name not in GRID_FIELDS:
            raise InputError("is not a field of a grid", column=name, hint=known_names(name, GRID_FIELDS))
    budget = body.get("budget")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float) or budget <= 0):
        raise InputError(f"{budget!r} is not an amount of dollars", column="budget")
    factors = tuple(_factor(name, levels) for name, levels in _mapping(body.get("factors") or {}, "factors").items())
    also = tuple(_single(row, n) for n, row in enumerate(_list(body.get("also") or [], "also"), 1))
    without = [_mapping(row, "without") for row in _list(body.get("without") or [], "without")]
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


def _factor(name: str, data: Any) -> GridFactor:
    column = f"factors.{name}"
    if isinstance(data, dict):
        # Named levels, each of which sets several fields.
        named = cast("dict[Any, Any]", data)
        levels = [FactorLevel(label=str(label), changes=_changes(value, column)) for label, value in named.items()]
    else:
        path = field_path(name)
        levels = [FactorLevel(label=level_label(value), changes={path: value}) for value in _list(data, column)]
    if not levels:
        raise InputError("has no level", column=column, hint="write a list of values")
    labels = [level.label for level in levels]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise InputError(f"has the level {twice[0]!r} twice", column=column)
    return GridFactor(name=name, levels=tuple(levels))


def _single(data: Any, number: int) -> FactorLevel:
    settings = _mapping(data, f"also.{number}")
    return FactorLevel(label=str(settings.pop("name", "")), changes=_changes(settings, f"also.{number}"))


def _changes(data: Any, column: str) -> dict[str, Any]:
    return {field_path(name): value for name, value in _mapping(data or {}, column).items()}


def _mapping(data: Any, column: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InputError(f"expected fields with values, found {str(data)[:40]!r}", column=column)
    return {str(name): value for name, value in cast("dict[Any, Any]", data).items()}


def _list(data: Any, column: str) -> list[Any]:
    if not isinstance(data, list):
        raise InputError(f"expected a list, found {str(data)[:40]!r}", column=column)
    return cast("list[Any]", data)


# The factors of runs outside a grid: the fields in which they differ.

NO_FACTOR = ("budget", "prices", "efforts", "questions.digest", "strict")
"""Fields that do not affect a run's own forecasts."""


def factors_of_specs(specs: Mapping[str, RunSpec]) -> dict[str, dict[str, str]]:
    """Return the fields in which runs differ, by run name. Unset options have their defaults.

    >>> from foretell.runs.spec import QuestionsSpec
    >>> one = RunSpec(questions=QuestionsSpec(dataset="demo"), forecaster="prior")
    >>> factors_of_specs({"a": one, "b": RunSpec(questions=one.questions, forecaster="prior", seed=1)})
    {'a': {'seed': '0'}, 'b': {'seed': '1'}}
    """
    flat = {name: _flat(spec) for name, spec in specs.items()}
    paths = dict.fromkeys(path for row in flat.values() for path in row)
    varying = [path for path in paths if len({row.get(path) for row in flat.values()}) > 1]
    return {name: {_short_name(path): row[path] for path in varying if path in row} for name, row in flat.items()}


def _flat(spec: RunSpec) -> dict[str, str]:
    from foretell.forecasters.forecaster import current_options, make_forecaster
    from foretell.runs.runtime import forecaster_name, forecaster_options

    settings = asdict(spec)
    try:
        forecaster = make_forecaster(forecaster_name(spec), forecaster_options(spec))
        defaults = asdict(forecaster) if is_dataclass(forecaster) and not isinstance(forecaster, type) else {}
        options = current_options(forecaster_name(spec), settings["options"])
    except (InputError, TypeError):
        defaults, options = {}, settings["options"]
    settings["options"] = {**{k: v for k, v in defaults.items() if _plain(v)}, **options}
    flat: dict[str, str] = {}
    for name, value in settings.items():
        inner = cast("dict[str, Any]", value) if isinstance(value, dict) else None
        for path, leaf in ((f"{name}.{key}", v) for key, v in inner.items()) if inner is not None else ((name, value),):
            if path not in NO_FACTOR and name not in NO_FACTOR:
                flat[path] = level_label(leaf)
    return flat


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | list | tuple)
