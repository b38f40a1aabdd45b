"""The leaderboard of an arena in the terminal, as JSON and as one web page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.metrics.bootstrap import Resampling
from foretell.scoring.arena_leaderboard import MAIN_METRIC, ArenaLeaderboardRow, ScoredArena
from foretell.scoring.arena_rows import arena_table_from_prophet_arena
from foretell.scoring.arena_table import ArenaTable
from foretell.scoring.arena_view import ArenaLeaderboard, view_of_scored
from foretell.scoring.event_sums import MomentChoice
from foretell.scoring.score import SCORE_RESAMPLING
from foretell.scoring.table import CROWD

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.report.study import StudyResult


ARENA_ADVICE = (
    "Brier is the mean over events of the mean squared error over an event's markets. An event that was asked at "
    "several moments counts once. Lower is better; 0.25 is always-0.5, and the crowd's price is the row to beat.",
    "crowd − entry is a paired difference on the markets for which both have a probability: what makes an event hard "
    "drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, two-sided, without correction for the number "
    "of rows. To tell two entries apart, read the table of pairs, not whether intervals overlap.",
    "Intervals resample events. Events of one match day or one news story hang together more than that: intervals are "
    "then somewhat too short.",
    "The base rate counts only events of the category that had resolved before the moment of asking. It is 0.5 until "
    "something has.",
    "Returns bet a dollar on every market at the asks of the moment, whatever its depth: they say whether a forecast "
    "knew something the price did not, not what a trader would have earned. Net returns pay the platform's fee. A few "
    "long shots that came in decide them; look at the interval and at the Sharpe ratio.",
    "An entry that left moments out is scored on what it answered. Compare it by its difference to the crowd.",
)


@dataclass(frozen=True, kw_only=True)
class ArenaReport:
    """One report in its three forms."""

    view: ArenaLeaderboard
    scored: ScoredArena

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return self.view.to_dict()

    def study(self, *, pictures: bool = False) -> "StudyResult":
        """Its tables, and its pictures where wanted, as any other study has them."""
        from foretell.report.arena_tables import arena_grids
        from foretell.report.study import StudyResult

        charts = ()
        if pictures:
            from foretell.report.arena_charts import arena_charts

            charts = arena_charts(self.view, self.scored)
        return StudyResult(
            name="standings",
            title=f"Standings of {self.view.arena}",
            sentences=(arena_finding(self.view),),
            tables=arena_grids(self.view),
            charts=charts,
            notes=self.view.notes,
            settings=self.view.settings,
        )

    def print(self, console: "Console", *, by: Sequence[str] = ()) -> None:
        """The leaderboard, and the tables of what was asked for; everything else is in the page and in the JSON."""
        from foretell.report.study_report import print_study

        study = self.study()
        brief = [grid for i, grid in enumerate(study.tables) if i < 3 or grid.title.rpartition(" by ")[2] in by]
        print_study(replace(study, tables=tuple(brief)), console)

    def text(self, *, by: Sequence[str] = (), width: int = 120) -> str:
        """What is printed, as text."""
        from io import StringIO

        from foretell.report.terminal import console

        out = StringIO()
        self.print(console(file=out, width=width, color_system=None), by=by)
        return out.getvalue()

    def markdown(self) -> str:
        """All tables as Markdown."""
        from foretell.report.study_report import markdown_study

        return markdown_study(self.study())

    def page(self) -> str:
        """A whole HTML document that needs no network."""
        from foretell.report.study_report import study_page

        return study_page(self.study(pictures=True), how_to_read=ARENA_ADVICE)


def arena_report(
    arena: ArenaTable,
    *,
    by: Sequence[str] = (),
    choice: MomentChoice = "mean",
    draws: int = SCORE_RESAMPLING.draws,
    seed: int = 0,
) -> ArenaReport:
    """Score an arena; `by` (category, platform, lead time) adds tables with more numbers for each group."""
    scored = ScoredArena.of(arena, choice, Resampling(draws=draws, seed=seed))
    return ArenaReport(view=view_of_scored(arena, scored, by=by), scored=scored)


def score_arena(path: str | Path, **options: Any) -> ArenaReport:
    """Score the published events of Prophet Arena (its CSV subset or events.jsonl), with the baselines alone.

    `options` are those of `arena_report`.
    """
    return arena_report(arena_table_from_prophet_arena(path), **options)


def arena_finding(view: ArenaLeaderboard) -> str:
    """The result in a sentence or two."""
    scale = f"{view.counts.resolved:,} resolved events, {view.counts.markets_scored:,} outcomes scored"
    entries = [line for line in view.lines if not line.entry.anchor and MAIN_METRIC in line.scores]
    crowd = next((line for line in view.lines if line.entry.name == CROWD and MAIN_METRIC in line.scores), None)
    market = f"the crowd's price {crowd.scores[MAIN_METRIC].estimate:.4f}" if crowd else "there is no market"
    if not entries:
        return f"No entry has a scored forecast yet; {market} ({scale})."
    best = entries[0]
    text = (
        f"{best.entry.name} leads the entries with a Brier score of {best.scores[MAIN_METRIC].estimate:.4f}, {market}"
    )
    found = view.versus_crowd.get(best.entry.name)
    if found is not None:
        sure = "the difference is larger than chance explains" if found.stars else "chance explains the difference"
        text += f"; on {found.n:,} common events {sure}"
    return f"{text} ({scale}).{_runner_up(view, entries)}"


def _runner_up(view: ArenaLeaderboard, entries: Sequence[ArenaLeaderboardRow]) -> str:
    """Whether the first is ahead of the second by more than noise."""
    names = view.pairs.names
    if len(entries) < 2 or not all(line.entry.name in names for line in entries[:2]):
        return ""
    first, second = (line.entry.name for line in entries[:2])
    i, j = names.index(first), names.index(second)
    gap, p = -float(view.pairs.matrix.diff[i, j]), float(view.pairs.matrix.p[i, j])
    if not (math.isfinite(gap) and math.isfinite(p)):
        return ""
    told = "more than chance explains" if p < 1 - view.settings["level"] else "no more than chance explains"
    return (
        f" It is {gap:.4f} better than {second}, the next entry: {told}."
        if gap >= 0
        else (f" On the markets both answered {second}, the next entry, is {-gap:.4f} better: {told}.")
    )
