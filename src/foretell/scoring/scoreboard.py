"""The result of scoring: metrics with their intervals, rankings, and conversions to plain data."""

import math
from collections.abc import Mapping
from dataclasses import field
from html import escape
from typing import Any

from foretell.data.untrusted import rows_as_text
from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.metrics.metric import METRICS, metric_text
from foretell.number_text import bracket, number, signed
from foretell.questions.codec import plain_data
from foretell.questions.tabular import Tabular, rows_as_html
from foretell.scoring.baselines import BASELINES, OVERALL
from foretell.scoring.verdict import Finding, Verdict

SCHEMA = "foretell/score/3"
Group = Mapping[str, str]
"""Selects targets, e.g. {"kind": "market", "source": "manifold"}; {"kind": "overall"} is the mean over kinds."""


@frozen
class Score:
    """One forecaster on one group of targets."""

    forecaster: str
    group: Group
    n: int
    """Number of targets scored."""
    questions: int
    completion: float
    """Share of the group's resolved targets that the forecaster answered."""
    metrics: Mapping[str, Interval]
    """Metrics by name, such as brier and brier_index; a metric that cannot be computed is absent."""


@frozen
class LeaderboardRow:
    """One forecaster in one group."""

    place: int | None
    """Rank among forecasters; None for a baseline or if there is no score."""
    score: Score
    verdict: Verdict | None
    """This forecaster against the reference, in the metric that ranks the board."""
    baseline: bool
    reference: bool

    @property
    def name(self) -> str:
        """Name of the forecaster."""
        return self.score.forecaster

    def metric(self, name: str) -> Interval | None:
        """Return a metric of this row; None if it could not be computed."""
        return self.score.metrics.get(name)


@frozen
class LeaderboardSection:
    """One group of the board, best first."""

    group: Group
    rows: tuple[LeaderboardRow, ...]

    @property
    def title(self) -> str:
        """Title of the group."""
        return group_title(self.group)


@frozen
class Scoreboard(Tabular):
    """Everything that `foretell score` computes for a set of forecasts."""

    scores: tuple[Score, ...]
    verdicts: tuple[Verdict, ...]
    """Every forecaster against the reference, by group, on the targets both answered."""
    reference: str
    metric: str
    """The metric that ranks the board."""
    settings: Mapping[str, Any]
    """Settings needed to reproduce the numbers: draws, seed, clusters, weights, treatment of trials and gaps."""
    notes: tuple[str, ...] = ()
    behind_half: Mapping[str, Finding] = field(default_factory=dict[str, Finding])
    """Forecasters with a worse score over all targets than always saying 0.5, and the verdict on each."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; missing numbers are null. `lead` is the verdict of the first row's headline."""
        return {"schema": SCHEMA, **plain_data(self), "lead": plain_data(self.lead())}

    def group(self, **group: str) -> tuple[Score, ...]:
        """Return the scores of one group, best first, without those that lack the board's metric."""
        return tuple(row.score for row in self.section(group).rows if self.metric in row.score.metrics)

    def groups(self) -> tuple[dict[str, str], ...]:
        """Return every group once, the overall one first."""
        seen = {tuple(sorted(s.group.items())): dict(s.group) for s in self.scores}
        return tuple(sorted(seen.values(), key=lambda g: (g.get("kind") != OVERALL, len(g))))

    def sections(self) -> tuple[LeaderboardSection, ...]:
        """Return a section per group, the overall one first."""
        return tuple(self.section(group) for group in self.groups())

    def section(self, group: Group) -> LeaderboardSection:
        """Return one group, best first by the board's metric; rows without a score come last."""
        sign = 1 if low_is_better(self.metric) else -1
        scores = {s.forecaster: s for s in self.scores if dict(s.group) == dict(group)}
        known = {
            name: sign * metric.estimate
            for name, score in scores.items()
            if (metric := score.metrics.get(self.metric)) is not None and not math.isnan(metric.estimate)
        }
        order = sorted(scores, key=lambda name: (name not in known, known.get(name, 0.0), name))
        against = {verdict.first: verdict for verdict in self.verdicts if dict(verdict.group) == dict(group)}
        ranked = [name for name in order if name not in BASELINES and math.isfinite(known.get(name, math.nan))]
        places = {name: place for place, name in enumerate(ranked, 1)}
        rows = [
            LeaderboardRow(
                place=places.get(name),
                score=scores[name],
                verdict=against.get(name),
                baseline=name in BASELINES,
                reference=name == self.reference,
            )
            for name in order
        ]
        return LeaderboardSection(group=group, rows=tuple(rows))

    def shown_metrics(self) -> tuple[str, ...]:
        """Metrics to show as columns: the board's own first, then all that any row has, in the order of the table."""
        present = {name for score in self.scores for name in score.metrics} - {self.metric}
        return (self.metric, *(name for name in METRICS if name in present))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per forecaster and group, best first, with group, counts and metrics with intervals."""
        lines: list[dict[str, Any]] = []
        for section in self.sections():
            for row in section.rows:
                score = row.score
                counts = {"n": score.n, "questions": score.questions, "completion": score.completion}
                line = {**section.group, "forecaster": score.forecaster, **counts}
                for name, value in score.metrics.items():
                    line |= {name: value.estimate, f"{name}_low": value.low, f"{name}_high": value.high}
                lines.append(line)
        return lines

    def lead(self) -> Verdict | None:
        """Return the verdict on the first row against the reference or, if it is the reference, against the next one.

        The next one is the best forecaster that is not a baseline, if there is one.
        """
        rows = [row for section in self.sections()[:1] for row in section.rows if row.metric(self.metric) is not None]
        if len(rows) < 2:
            return None
        if not rows[0].reference:
            return rows[0].verdict
        following = next((row for row in rows[1:] if not row.baseline), rows[1])
        return following.verdict and following.verdict.swapped()

    def __str__(self) -> str:
        return "\n\n".join(filter(None, [rows_as_text(self._brief()), *self._remarks()]))

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self._remarks())
        return rows_as_html(self._brief()) + remarks

    def _remarks(self) -> list[str]:
        """Return the verdict on the leader, the notes, and a warning if there are few clusters."""
        lead = self.lead()
        texts = () if lead is None else (lead.sentence, lead.correction_text, lead.warning and f"Note: {lead.warning}.")
        return [text for text in (*texts, *self.notes) if text]

    def _brief(self) -> list[dict[str, Any]]:
        """Return the rows for a first, short table, with an interval only for the board's own metric."""
        lines: list[dict[str, Any]] = []
        for section in self.sections():
            for row in section.rows:
                line: dict[str, Any] = {**section.group, "forecaster": row.name, "n": row.score.n}
                for name, value in row.score.metrics.items():
                    metric, scale = metric_text(name), 1
                    decimals, pts = metric.decimals, ""
                    if metric.unit == "points":
                        decimals, pts, scale = 1, " pts", 100
                    ends = bracket(scale * value.low, scale * value.high, decimals) if name == self.metric else ""
                    line[name] = f"{number(scale * value.estimate, decimals)}{pts} {ends}".rstrip()
                if row.verdict is not None:
                    line[f"minus {self.reference}"] = difference_text(row.verdict, metric_text(self.metric).decimals)
                lines.append(line)
        return lines


def difference_text(verdict: Verdict, decimals: int, *, gain: bool = False, points: bool = False) -> str:
    """Format a difference with its finding: +2.1**, +0.3 ≈, +0.9 ~, +9.1 ?; with `gain`, above 0 is better.

    Stars mean better or worse by more than chance. With `points`, a difference of shares is shown in points.
    """
    decimals = verdict.places(decimals)
    # With more decimals than the scores beside it, it is not their difference as they are shown.
    alike = decimals <= metric_text(verdict.metric).decimals
    shown = verdict.shown_difference(decimals) if alike else verdict.diff
    shown = -shown if gain and verdict.better == "low" else shown
    value = f"{signed(100 * shown, 1)} pts" if points else signed(shown, decimals)
    return value + verdict.mark if verdict.decided else f"{value} {verdict.symbol}"


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a row of a table."""
    return {
        **verdict.group,
        "first": verdict.first,
        "second": verdict.second,
        "metric": verdict.metric,
        "first_score": verdict.first_score.estimate,
        "second_score": verdict.second_score.estimate,
        **{name: getattr(verdict, name) for name in ("diff", "low", "high", "p", "p_corrected")},
        **{name: getattr(verdict, name) for name in ("n", "n_clusters", "n_effective", "says", "needed", "warning")},
    }


def group_title(group: Group) -> str:
    """Describe a group in words.

    >>> group_title({"kind": "overall"}), group_title({"kind": "market", "source": "infer"})
    ('Overall', 'Market · infer')
    """
    if group.get("kind") == OVERALL and len(group) == 1:
        return "Overall"
    text = " · ".join(value if column in ("kind", "source") else f"{column} {value}" for column, value in group.items())
    return text[:1].upper() + text[1:] if "kind" in group else text or "All"


def low_is_better(metric: str) -> bool:
    """Whether low values of the metric are good."""
    return metric in METRICS and METRICS[metric].better == "low"
