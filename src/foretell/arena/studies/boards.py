"""Standings as a table."""

from collections.abc import Iterator, Mapping, Sequence

from foretell.arena.report.wording import percent
from foretell.arena.scoreboard import OVERALL
from foretell.arena.studies.paired import Standing
from foretell.arena.study import Column, Entry, Grid, Style, Value


def board(
    title: str, found: Sequence[Standing], groups: Sequence[str], *, styles: Mapping[str, Style] | None = None
) -> Grid:
    """Standings as a table: index and difference by kind, then overall with both intervals of the difference."""
    shown = [g for g in groups if g != OVERALL]
    columns = [column for group in shown for column in _kind_columns(group)]
    columns += [
        Column(label="BI", tip="Brier index, overall: mean over kinds, with its interval"),
        Column(label="Δ", tip="minus the reference on shared targets, questions resampled"),
        Column(label="Δ two-way", tip="the same with resolution days resampled beside questions"),
        Column(label="n", tip="targets answered"),
        Column(label="done", tip="share of the targets answered"),
    ]
    entries = [_entry(one, shown, (styles or {}).get(one.name, "")) for one in found]
    return Grid(title=title, columns=tuple(columns), entries=tuple(entries))


def _kind_columns(kind: str) -> Iterator[Column]:
    yield Column(label=kind, tip=f"Brier index on {kind} questions")
    yield Column(label=f"Δ {kind}", tip=f"minus the reference on {kind} questions")


def _entry(one: Standing, kinds: Sequence[str], style: Style) -> Entry:
    values: list[Value] = []
    for kind in kinds:
        score = one.index.get(kind)
        values += [None if score is None else score.estimate, one.against.get(kind)]
    values += [one.index.get(OVERALL), one.against.get(OVERALL), one.two_way, one.n, percent(one.completion)]
    return Entry(name=one.name, values=tuple(values), style=style)
