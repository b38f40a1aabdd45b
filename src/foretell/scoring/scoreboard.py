"""The result of scoring: numbers with their intervals, ready to print, plot or save."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from markupsafe import Markup

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.questions.errors import MissingExtra
from foretell.scoring.table import OVERALL

SCHEMA = "foretell/score/1"


@dataclass(frozen=True, kw_only=True)
class Score:
    """One forecaster on one group of targets."""

    forecaster: str
    group: Mapping[str, str]
    """Which targets, e.g. {"kind": "market", "source": "manifold"}; {"kind": "overall"} is the mean over kinds."""
    n: int
    """Targets scored."""
    questions: int
    completion: float
    """Share of the group's resolved targets that the forecaster answered."""
    metrics: Mapping[str, Interval]
    """By metric name: brier, bi, ms, log, ece, return, sharpe; a metric that cannot be computed is absent."""


@dataclass(frozen=True, kw_only=True)
class ScoreDifference:
    """One forecaster against the reference on the targets both answered."""

    forecaster: str
    reference: str
    group: Mapping[str, str]
    metric: str
    comparison: Comparison


@dataclass(frozen=True, kw_only=True)
class Scoreboard:
    """Everything `foretell score` knows about a set of forecasts."""

    scores: tuple[Score, ...]
    differences: tuple[ScoreDifference, ...]
    reference: str
    metric: str
    """The metric the board is ranked by."""
    settings: Mapping[str, Any]
    """What it takes to reproduce the numbers: draws, seed, clusters, weights, treatment of trials and gaps."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that do not exist are null."""
        return {"schema": SCHEMA, **_plain(asdict(self))}

    def group(self, **group: str) -> tuple[Score, ...]:
        """The scores of one group, best first."""
        from foretell.metrics.metric import METRICS

        chosen = [s for s in self.scores if dict(s.group) == group and self.metric in s.metrics]
        return tuple(
            sorted(chosen, key=lambda s: s.metrics[self.metric].estimate, reverse=METRICS[self.metric].better == "high")
        )

    def groups(self) -> tuple[dict[str, str], ...]:
        """Every group once, the overall one first."""
        seen = {tuple(sorted(s.group.items())): dict(s.group) for s in self.scores}
        return tuple(sorted(seen.values(), key=lambda g: (g.get("kind") != OVERALL, len(g))))

    def rows(self) -> list[dict[str, Any]]:
        """A row per forecaster and group, best first: the group, the counts, and every metric with its interval."""
        return [
            {
                **group,
                "forecaster": one.forecaster,
                "n": one.n,
                "questions": one.questions,
                "completion": one.completion,
                **_metric_columns(one.metrics),
            }
            for group in self.groups()
            for one in (*self.group(**group), *self._unranked(group))
        ]

    def _unranked(self, group: Mapping[str, str]) -> list[Score]:
        return [s for s in self.scores if dict(s.group) == dict(group) and self.metric not in s.metrics]

    def to_frame(self) -> Any:
        """The rows as a pandas data frame."""
        return rows_as_frame(self.rows())

    def __str__(self) -> str:
        return rows_as_text(self._brief())

    def _repr_html_(self) -> str:
        return rows_as_html(self._brief())

    def _brief(self) -> list[dict[str, Any]]:
        """The rows without what a reader of a first table can miss: intervals only of the board's own metric."""
        ends = (f"{self.metric}_low", f"{self.metric}_high")
        return [
            {key: value for key, value in row.items() if not key.endswith(("_low", "_high")) or key in ends}
            for row in self.rows()
        ]


def _metric_columns(metrics: Mapping[str, Interval]) -> dict[str, float]:
    columns: dict[str, float] = {}
    for name, one in metrics.items():
        columns |= {name: one.estimate, f"{name}_low": one.low, f"{name}_high": one.high}
    return columns


# Rows of results as a data frame, as text and as HTML, for a prompt and for a notebook.


def rows_as_frame(rows: list[dict[str, Any]]) -> Any:
    """A pandas data frame; without pandas an error says what to install."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a data frame", "notebook") from None
    return pandas.DataFrame(rows)


def rows_as_text(rows: list[dict[str, Any]]) -> str:
    """Columns of text, numbers to the right.

    >>> print(rows_as_text([{"forecaster": "A", "brier": 0.04}, {"forecaster": "B", "brier": 0.25}]))
    forecaster  brier
    A            0.04
    B            0.25
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([_cell_text(row.get(name, "")) for name in names] for row in rows)]
    numeric = [any(isinstance(row.get(name), float | int) for row in rows) for name in names]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def rows_as_html(rows: list[dict[str, Any]]) -> str:
    """A plain table; every text is escaped."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = Markup("").join(Markup("<th>{}</th>").format(name) for name in names)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(_cell_text(row.get(name, ""))) for name in names)
        )
        for row in rows
    )
    return str(Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body))


def _cell_text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
