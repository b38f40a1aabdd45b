"""`foretell arena score`: standings in the terminal, as JSON and as one web page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from foretell.arena.anchors import CROWD
from foretell.arena.standings.board import Scored
from foretell.arena.standings.measures import MAIN
from foretell.arena.standings.standings import Standings
from foretell.arena.standings.sums import Choice
from foretell.arena.standings.view import StandingsView, view_of
from foretell.evaluate.bootstrap import Resampling

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.arena.study import Study

ADVICE = (
    "Brier is the mean over events of the mean squared error over an event's markets. An event that was asked at "
    "several moments counts once. Lower is better; 0.25 is always-0.5, and the crowd's price is the row to beat.",
    "crowd − entry is a paired difference on the markets for which both have a probability: what makes an event hard "
    "drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, one-sided, without correction for the number "
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
class StandingsReport:
    """One report in its three forms."""

    view: StandingsView
    scored: Scored

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return self.view.to_dict()

    def study(self, *, pictures: bool = False) -> "Study":
        """Its tables, and its pictures where wanted, as any other study has them."""
        from foretell.arena.standings.tables import grids
        from foretell.arena.study import Study

        drawn = ()
        if pictures:
            from foretell.arena.standings.pictures import Subject
            from foretell.arena.standings.pictures import pictures as draw

            drawn = draw(Subject(view=self.view, scored=self.scored))
        return Study(
            name="standings",
            title=f"Standings of {self.view.arena}",
            finding=finding(self.view),
            grids=grids(self.view),
            pictures=drawn,
            notes=self.view.notes,
            settings=self.view.settings,
        )

    def print(self, console: "Console", *, by: Sequence[str] = ()) -> None:
        """The leaderboard, and the tables of what was asked for; everything else is in the page and in the JSON."""
        from foretell.arena.report.study_text import print_study

        study = self.study()
        brief = [grid for i, grid in enumerate(study.grids) if i < 3 or grid.title.rpartition(" by ")[2] in by]
        print_study(replace(study, grids=tuple(brief)), console)

    def text(self, *, by: Sequence[str] = (), width: int = 120) -> str:
        """What is printed, as text."""
        from io import StringIO

        from rich.console import Console

        out = StringIO()
        self.print(Console(file=out, width=width, color_system=None), by=by)
        return out.getvalue()

    def markdown(self) -> str:
        """All tables as Markdown."""
        from foretell.arena.report.study_text import markdown_study

        return markdown_study(self.study())

    def page(self) -> str:
        """A whole HTML document that needs no network."""
        from foretell.arena.report.study_page import study_page

        return study_page(self.study(pictures=True), advice=ADVICE)


def standings_report(
    standings: Standings,
    *,
    by: Sequence[str] = (),
    choice: Choice = "mean",
    draws: int = 1000,
    seed: int = 0,
) -> StandingsReport:
    """Score standings; `by` (category, platform, lead time) adds tables with more numbers for each group."""
    scored = Scored.of(standings, choice, Resampling(draws=draws, seed=seed))
    return StandingsReport(view=view_of(standings, scored, by=by), scored=scored)


def finding(view: StandingsView) -> str:
    """The result in a sentence or two."""
    scale = f"{view.counts.resolved:,} resolved events, {view.counts.markets_scored:,} outcomes scored"
    entries = [line for line in view.lines if not line.entry.anchor and MAIN in line.scores]
    crowd = next((line for line in view.lines if line.entry.name == CROWD and MAIN in line.scores), None)
    market = f"the crowd's price {crowd.scores[MAIN].estimate:.4f}" if crowd else "there is no market"
    if not entries:
        return f"No entry has a scored forecast yet; {market} ({scale})."
    best = entries[0]
    told = f"{best.entry.name} leads the entries with a Brier score of {best.scores[MAIN].estimate:.4f}, {market}"
    found = view.versus_crowd.get(best.entry.name)
    if found is not None:
        sure = "the difference is larger than chance explains" if found.stars else "chance explains the difference"
        told += f"; on {found.n:,} common events {sure}"
    return f"{told} ({scale})."
