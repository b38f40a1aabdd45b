"""A bot's day in a tournament, as a page and as Markdown: forecasts, comments, money and failures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from foretell.frozen import frozen
from foretell.number_text import dollars, plural
from foretell.report.html import render_page
from foretell.report.markup import markdown_text, shorten, web_address
from foretell.report.provenance import Provenance


@frozen
class TournamentRow:
    """One question in one tournament run: its forecast and whether it was sent, or why there is none."""

    question: str
    """The question's id in foretell, such as `metaculus/20925`."""
    text: str = ""
    """Wording of the question."""
    answer: str = ""
    """The forecast in a few words; empty if there is none."""
    sent: bool = False
    """Whether the platform has the forecast and its comment."""
    problem: str = ""
    """Why the forecast was not sent or not made."""
    url: str = ""
    comment: str = ""
    """Web address of the comment."""

    @property
    def named(self) -> str:
        """The wording and the id, on one line."""
        return f"{shorten(self.text, 60)} ({self.question})" if self.text else self.question

    @property
    def outcome(self) -> str:
        """The answer, and why it was not sent if it was not; or why there is no answer."""
        return (
            f"{self.answer} (not sent: {self.problem})" if self.answer and self.problem else self.answer or self.problem
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


@frozen
class TournamentDay:
    """Everything that happened in a tournament on one day."""

    tournament: str
    account: str
    day: str
    """Date as YYYY-MM-DD, in UTC."""
    visits: int
    rows: Sequence[TournamentRow]
    skipped: Mapping[str, int]
    """Number of open questions that cannot be asked, by reason, at the last run."""
    notes: Sequence[str]
    billed: float
    """Dollars billed on this day."""
    billed_in_all: float
    """Dollars billed for the tournament so far."""
    budget: float | None
    """Budget of the tournament in dollars; None if there is none."""
    unknown: float = 0.0
    """Dollars that lost replies may have cost in addition, on the tournament so far."""
    comments: bool = True
    """Whether every forecast is sent with a comment."""

    @property
    def sent(self) -> list[TournamentRow]:
        """Forecasts that the platform has."""
        return [row for row in self.rows if row.sent]

    @property
    def failed(self) -> list[TournamentRow]:
        """Questions whose last attempt failed; one that succeeded later is not a failure."""
        last = {row.question: row for row in self.rows}
        return [row for row in last.values() if not row.sent]

    @property
    def lead(self) -> str:
        """The day in a sentence."""
        of = f" of {dollars(self.budget)}" if self.budget is not None else ""
        how = "sent with their comments" if self.comments else "sent"
        counts = f"{plural(len(self.sent), 'forecast')} {how}, {len(self.failed)} failed"
        money = f"{dollars(self.billed)} billed today, {dollars(self.billed_in_all)}{of} in all"
        money += f", {dollars(self.unknown)} unknown" if self.unknown else ""
        return f"{counts}, in {plural(self.visits, 'run')} as {self.account}; {money}."


def tournament_page(day: TournamentDay) -> str:
    """Render the day as a single-file page."""
    title = f"{day.tournament}, {day.day}"
    return render_page("report/tournament.html", title=title, lead=day.lead, notes=(), sections=(), day=day)


def markdown_summary(day: TournamentDay) -> str:
    """Return the day as Markdown, for places that cannot show pages."""
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
        lines += ["", *filter(None, [heading]), *(f"- {markdown_text(item)}" for item in listed)] if listed else []
    return "\n".join([*lines, "", Provenance.now().to_markdown()])


def _link(text: str, address: str, without: str | None = None) -> str:
    """Return a Markdown link if the address is on the web, else the text alone, or `without` if given."""
    place = web_address(address).replace("(", "%28").replace(")", "%29").replace("|", "%7C")
    shown = markdown_text(text)
    return f"[{shown}]({place})" if place else shown if without is None else without
