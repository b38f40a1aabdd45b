"""A tree of claims as a picture: the answer on the left, what it rests on to the right, probabilities as colours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foretell.report.charts.svg import Chart, figure, rect, text
from foretell.report.markup import Markup, compact, element, shorten
from foretell.report.theme import DIVERGING

BOX, ROW, COLUMN, MARGIN = 210, 40, 258, 6
HEIGHT = 32
LETTERS = 34
MOST_DRAWN = 60
"""Claims of one picture; deeper ones are counted in the box above them."""


@dataclass(frozen=True, kw_only=True)
class PictureClaim:
    """One claim of the picture."""

    id: str
    text: str
    p: float | None
    value: str
    """The probability as it is written."""
    children: Sequence[str] = ()
    pull: float = 0.0
    """Above 0 where the answer rises with it, below where it falls, 0 where that is not known."""
    alarm: bool = False
    """It failed or is stale."""


def tree_picture(root: str, claims: Mapping[str, PictureClaim], title: str) -> Chart:
    """Boxes from left to right. A claim that several rest on is drawn once, with a line to each of them."""
    depth, hidden = _drawn(root, claims)
    places = _places(root, claims, depth)
    lines = [
        _edge(places[id], places[child], claims[child].pull)
        for id in places
        for child in claims[id].children
        if child in places
    ]
    boxes = [mark for id, place in places.items() for mark in _box(claims[id], place, hidden.get(id, 0))]
    width = COLUMN * max(depth.values()) + BOX + 2 * MARGIN
    height = max(y for _, y in places.values()) + HEIGHT + MARGIN
    return figure(width, height, title, *lines, *boxes)


def _drawn(root: str, claims: Mapping[str, PictureClaim]) -> tuple[dict[str, int], dict[str, int]]:
    """The column of every claim that is drawn, and how many children of a claim are not."""
    drawn, hidden, level = {root: None}, dict[str, int](), [root]
    while level:
        below: list[str] = []
        for id in level:
            new = [child for child in dict.fromkeys(claims[id].children) if child not in drawn]
            if len(drawn) + len(new) > MOST_DRAWN:
                hidden[id] = len(new)
                continue
            drawn |= dict.fromkeys(new)
            below += new
        level = below
    # A claim stands to the right of everything that rests on it, also where one of these stands further to the right.
    depth = dict.fromkeys(drawn, 0)
    for _ in drawn:  # As often as the longest way is long, at most.
        for id in drawn:
            below = [child for child in claims[id].children if child in drawn and depth[child] <= depth[id]]
            depth |= dict.fromkeys(below, depth[id] + 1)
    return depth, {id: count for id, count in hidden.items() if count}


def _places(root: str, claims: Mapping[str, PictureClaim], depth: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Left upper corners: a row for each end of a branch, a claim in the middle of what it rests on."""
    rows: dict[str, float] = {}
    first: dict[str, str] = {root: ""}
    """Of claims that several rest on: the one beside which it is drawn."""
    stack: list[tuple[str, bool]] = [(root, False)]
    taken = 0
    while stack:
        id, done = stack.pop()
        beside = [child for child in claims[id].children if child in depth and depth[child] == depth[id] + 1]
        if done:
            below = [rows[child] for child in beside if first[child] == id]
            rows[id] = (min(below) + max(below)) / 2 if below else float(taken)
            taken += 0 if below else 1
        else:
            new = [child for child in dict.fromkeys(beside) if child not in first]
            first |= dict.fromkeys(new, id)
            stack.append((id, True))
            stack.extend((child, False) for child in reversed(new))
    return {id: (MARGIN + COLUMN * depth[id], MARGIN + ROW * row) for id, row in rows.items()}


def _edge(start: tuple[float, float], end: tuple[float, float], pull: float) -> Markup:
    (x, y), (right, below) = (start[0] + BOX, start[1] + HEIGHT / 2), (end[0], end[1] + HEIGHT / 2)
    middle = (x + right) / 2
    at = [compact(value) for value in (x, y, middle, y, middle, below, right, below)]
    style = "l-a" if pull > 0 else "l-b dash" if pull < 0 else "l-axis"
    curve = f"M{at[0]} {at[1]}C{at[2]} {at[3]} {at[4]} {at[5]} {at[6]} {at[7]}"
    return element("path", d=curve, class_=f"no bold {style}")


def _box(claim: PictureClaim, place: tuple[float, float], hidden: int) -> list[Markup]:
    x, y = place
    step = None if claim.p is None else min(int(claim.p * len(DIVERGING)), len(DIVERGING) - 1)
    ink = "" if step is None else f" f-o{step}"
    fill = "f-panel" if step is None else f"f-d{step}"
    more = f" (+{hidden})" if hidden else ""
    alarm = " l-b bold dash" if claim.alarm else " l-axis thin"
    return [
        rect(x, y, BOX, HEIGHT, f"{fill}{alarm}", tip=f"{claim.id} {claim.value}: {claim.text}"),
        text(x + 6, y + 13, f"{claim.id}{more}", f"s w{ink}"),
        text(x + BOX - 6, y + 13, claim.value, f"s w r{ink}"),
        text(x + 6, y + 27, shorten(claim.text, LETTERS), f"xs{ink}"),
    ]
