"""What a bot did in a tournament on one day, as a page and as Markdown: forecasts, comments, money, failures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foretell.report.html import render_page
from foretell.report.markup import markdown_text, shorten, web_address


@dataclass(frozen=True, kw_only=True)
class TournamentRow:
    """One question in one visit: its forecast with what became of it, or why there is none."""

    question: str
    """Our name of it, such as `metaculus/20925`."""
    text: str = ""
    """How it is worded."""
    answer: str = ""
    """The forecast in a few words; empty if there is none."""
    sent: bool = False
    """Whether the platform has the forecast and its comment."""
    problem: str = ""
    """Why it has not."""
    url: str = ""
    comment: str = ""
    """Address of the comment."""

    @property
    def named(self) -> str:
        """Its words and our name of it, on one line."""
        return f"{shorten(self.text, 60)} ({self.question})" if self.text else self.question

    @property
    def outcome(self) -> str:
        """The answer, and why it was not sent; or why there is none."""
        return (
            f"{self.answer} (not sent: {self.problem})" if self.answer and self.problem else self.answer or self.problem
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class TournamentDay:
    """Everything that happened in a tournament on one day."""

    tournament: str
    account: str
    day: str
    """YYYY-MM-DD, in UTC."""
    visits: int
    rows: Sequence[TournamentRow]
    skipped: Mapping[str, int]
    """Open questions that cannot be asked, by reason, at the last look."""
    notes: Sequence[str]
    dollars: float
    """Spent on this day."""
    spent: float
    """On the tournament in all."""
    budget: float | None
    """For the tournament."""
    at_risk: float = 0.0
    """Dollars that lost replies may have cost besides, on the tournament in all."""
    comments: bool = True
    """Whether every forecast has a comment beside it."""

    @property
    def sent(self) -> list[TournamentRow]:
        """Forecasts that are on the platform."""
        return [row for row in self.rows if row.sent]

    @property
    def failed(self) -> list[TournamentRow]:
        """Questions whose last attempt came to nothing: one that was mended later is no failure."""
        last = {row.question: row for row in self.rows}
        return [row for row in last.values() if not row.sent]

    @property
    def lead(self) -> str:
        """The day in a sentence."""
        of = f" of ${self.budget:g}" if self.budget is not None else ""
        how = "sent with their comments" if self.comments else "sent"
        counts = f"{_count(len(self.sent), 'forecast')} {how}, {len(self.failed)} failed"
        money = f"${self.dollars:.2f} spent today, ${self.spent:.2f}{of} in all"
        money += f", ${self.at_risk:.2f} at risk" if self.at_risk else ""
        return f"{counts}, in {_count(self.visits, 'visit')} as {self.account}; {money}."


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def tournament_page(day: TournamentDay) -> str:
    """The day as a page of one file."""
    title = f"{day.tournament}, {day.day}"
    return render_page("report/tournament.html", title=title, lead=day.lead, notes=(), sections=(), day=day)


def markdown_summary(day: TournamentDay) -> str:
    """The same as Markdown, for where pages cannot be shown."""
    lines = [f"## {markdown_text(f'{day.tournament}, {day.day}')}", "", markdown_text(day.lead), ""]
    if day.sent:
        lines += ["| question | forecast | |", "|---|---|---|"]
        lines += [
            f"| {_link(row.text, row.url)} | {markdown_text(row.answer)} | {_link('comment', row.comment, '')} |"
            for row in day.sent
        ]
    failed = [f"{row.text}: {row.problem}" for row in day.failed]
    skipped = [f"{n} × {reason}" for reason, n in day.skipped.items()]
    for heading, listed in (("Failed:", failed), ("Left out:", skipped), ("", day.notes)):
        lines += ["", *filter(None, [heading]), *(f"- {markdown_text(one)}" for one in listed)] if listed else []
    return "\n".join(lines) + "\n"


def _link(text: str, address: str, without: str | None = None) -> str:
    """A link where the address leads to the web; else the text alone, or what stands `without`."""
    place = web_address(address).replace("(", "%28").replace(")", "%29").replace("|", "%7C")
    shown = markdown_text(text)
    return f"[{shown}]({place})" if place else shown if without is None else without
