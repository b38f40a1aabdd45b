"""What becomes of a belief that was overwritten, as tables: the share of the push that is left later."""

from collections.abc import Sequence
from math import isfinite

from foretell.arena.report.figures.forest import ForestRow, forest_plot
from foretell.arena.report.figures.paths import paths_plot
from foretell.arena.report.wording import number
from foretell.arena.studies.intervention import Following, Pair, follow
from foretell.arena.studies.shares import DRAWS, mean, rate
from foretell.arena.studies.trajectory import Trace, errors
from foretell.arena.study import Column, Entry, Grid, Picture, Study, Value
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.intervals import Interval

FINAL = "in the forecast"
ADVICE = (
    "Every question is run twice with the same words up to a step. There the second run's belief is overwritten, and "
    "what follows is compared on the log-odds scale: 1 means that all of the push is still there, 0 that it is "
    "forgotten, below 0 that the model went the other way.",
    "Mostly followed: the share of pairs in which more than half of the push is left in the forecast. A belief that "
    "steers nothing is decoration; one that is followed blindly makes early mistakes last.",
    "Intervals come from resampling whole questions. Trials that ended before a belief could be overwritten are not "
    "compared; they may be the easy ones.",
)
Found = Sequence[tuple[str, Following]]


def intervention_study(
    tried: Sequence[tuple[Trace, Pair | None]], *, step: int, resampling: Resampling = DRAWS
) -> Study:
    """The study of many pushes; trials that ended before the step have no pair and are counted."""
    pairs = [pair for _, pair in tried if pair is not None]
    found = [(pair.question_id, one) for pair in pairs if (one := follow(pair)) is not None]
    return Study(
        name="intervention",
        title="Does a belief steer what follows?",
        finding=_finding(found, resampling),
        grids=(_later(found, resampling), _directions(found, resampling), _pushes(pairs)),
        pictures=tuple(_pictures(found, resampling)),
        notes=tuple(_notes(tried, step)),
        settings={"step": step, "draws": resampling.draws, "seed": resampling.seed},
        advice=ADVICE,
    )


def _places(found: Found) -> list[tuple[str, list[tuple[str, float]]]]:
    """What is left, by how many beliefs later, and in the forecast."""
    longest = max((len(one.kept) for _, one in found), default=0)
    later = [
        (f"{k + 1} belief{'s' * (k > 0)} later", [(q, one.kept[k]) for q, one in found if len(one.kept) > k])
        for k in range(longest)
    ]
    return [*later, (FINAL, [(q, one.final) for q, one in found if isfinite(one.final)])]


def _left(shares: Sequence[tuple[str, float]], resampling: Resampling) -> Interval | None:
    return mean([share for _, share in shares], [question for question, _ in shares], resampling)


def _followed(shares: Sequence[tuple[str, float]], resampling: Resampling) -> Interval | None:
    return rate([float(share > 0.5) for _, share in shares], [question for question, _ in shares], resampling)


def _row(shares: Sequence[tuple[str, float]], resampling: Resampling) -> tuple[Value, ...]:
    return len(shares), _left(shares, resampling), _followed(shares, resampling)


COLUMNS = (
    Column(label="n", decimals=0, tip="pairs that got so far"),
    Column(label="left", decimals=2, tip="mean share of the push that is left"),
    Column(label="mostly followed", decimals=2, tip="share of pairs with more than half of the push left"),
)


def _later(found: Found, resampling: Resampling) -> Grid:
    return Grid(
        title="What is left of a push",
        head="Where",
        columns=COLUMNS,
        entries=tuple(Entry(name=name, values=_row(shares, resampling)) for name, shares in _places(found)),
        caption="On the log-odds scale; in brackets 95 % intervals, questions resampled.",
    )


def _directions(found: Found, resampling: Resampling) -> Grid:
    ways = (("pushed up", [x for x in found if x[1].push > 0]), ("pushed down", [x for x in found if x[1].push < 0]))
    entries = tuple(
        Entry(name=name, values=_row([(q, one.final) for q, one in part if isfinite(one.final)], resampling))
        for name, part in ways
    )
    return Grid(title="In the forecast, by direction", head="Push", columns=COLUMNS, entries=entries)


def _pushes(pairs: Sequence[Pair]) -> Grid:
    """Every pair, so that odd ones can be looked up."""
    entries: list[Entry] = []
    for pair in pairs:
        one = follow(pair)
        kept: Value = " ".join(number(share, 2) for share in one.kept) if one else None
        final: Value = one.final if one and isfinite(one.final) else None
        values: tuple[Value, ...] = (pair.target, one.push if one else None, pair.to, kept, final)
        entries.append(Entry(name=pair.question_id, values=values))
    columns = (
        Column(label="target", numeric=False),
        Column(label="push", decimals=2, tip="in log-odds"),
        Column(label="to", decimals=2, tip="the probability that was put in"),
        Column(label="left later", numeric=False, tip="share left at each later belief"),
        Column(label="left at the end", decimals=2),
    )
    return Grid(title="Every push", head="Question", columns=columns, entries=tuple(entries))


def _pictures(found: Found, resampling: Resampling) -> list[Picture]:
    rows = [
        ForestRow(name=name, interval=left)
        for name, shares in _places(found)
        if (left := _left(shares, resampling)) is not None
    ]
    courses = [[(0, 1.0), *((k + 1, share) for k, share in enumerate(one.kept))] for _, one in found]
    return [
        Picture(
            name="left",
            title="Share of the push that is left",
            figure=forest_plot(rows, label="share of the push left", decimals=2, reference=0.0),
        ),
        Picture(
            name="followed",
            title="Push by push",
            figure=paths_plot(courses, "Share of each push that is left", label="beliefs later", level=0.0, unit=False),
        ),
    ]


def _finding(found: Found, resampling: Resampling) -> str:
    shares = [(question, one.final) for question, one in found if isfinite(one.final)]
    left = _left(shares, resampling)
    if left is None:
        return "No pair of trials could be compared."
    ends = f"95 % interval {number(left.low, 2)} to {number(left.high, 2)}"
    followed = sum(share > 0.5 for _, share in shares)
    told = f"{number(left.estimate, 2)} of a push is left in the forecast ({ends})"
    return f"{told}; {followed} of {len(shares)} were mostly followed."


def _notes(tried: Sequence[tuple[Trace, Pair | None]], step: int) -> list[str]:
    early = sum(pair is None for _, pair in tried)
    told = f"{early} of {len(tried)} trials ended at step {step} or before, failed, or stated no belief there"
    why = errors(trace for trace, _ in tried).most_common(3)
    return [*([told] if early else []), *(f"{n} × {error}" for error, n in why)]
