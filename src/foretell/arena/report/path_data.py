"""The paths of figures as points and curves."""

import math
import re
from collections.abc import Iterator

Point = tuple[float, float]
Segment = tuple[str, tuple[Point, ...]]
"""A letter (M, L, C or Z) and absolute points: none for Z, three for a curve."""
TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Q": 4, "A": 7, "Z": 0}
"""Numbers after each letter."""
_PART = re.compile(r"([MmLlHhVvCcQqAaZz])|([-+]?(?:\d*\.\d+|\d+\.?)(?:[eE][-+]?\d+)?)")


def segments(d: str) -> list[Segment]:
    """A path in absolute coordinates; arcs become curves.

    >>> segments("M1 2h3v4z")
    [('M', ((1.0, 2.0),)), ('L', ((4.0, 2.0),)), ('L', ((4.0, 6.0),)), ('Z', ())]
    """
    found: list[Segment] = []
    at = start = (0.0, 0.0)
    for letter, numbers in _commands(d):
        made = list(_absolute(letter, numbers, at))
        if letter in "Zz":
            at = start
        elif made:
            at = made[-1][1][-1]
            start = at if letter in "Mm" else start
        found += made
    return found


def _commands(d: str) -> Iterator[tuple[str, list[float]]]:
    """Letters with their numbers, one by one: what follows a move without a letter of its own is a line."""
    letter, numbers = "", list[float]()
    for found in _PART.finditer(d):
        if found[1]:
            letter, numbers = found[1], []
            if letter in "Zz":
                yield letter, []
            continue
        if not letter:
            raise ValueError(f"the path {d[:40]!r} does not begin with a letter")
        numbers.append(float(found[2]))
        if len(numbers) == TAKES[letter.upper()]:
            yield letter, numbers
            letter, numbers = {"M": "L", "m": "l"}.get(letter, letter), []


def _absolute(letter: str, n: list[float], at: Point) -> Iterator[Segment]:
    x, y = at if letter.islower() else (0.0, 0.0)
    match letter.upper():
        case "Z":
            yield "Z", ()
        case "H":
            yield "L", ((x + n[0], at[1]),)
        case "V":
            yield "L", ((at[0], y + n[0]),)
        case "C":
            yield "C", ((x + n[0], y + n[1]), (x + n[2], y + n[3]), (x + n[4], y + n[5]))
        case "Q":
            yield "C", _cubic(at, (x + n[0], y + n[1]), (x + n[2], y + n[3]))
        case "A":
            yield from _arc(at, n, (x + n[5], y + n[6]))
        case other:
            yield other, ((x + n[0], y + n[1]),)


def _cubic(a: Point, q: Point, b: Point) -> tuple[Point, Point, Point]:
    one = (a[0] + 2 / 3 * (q[0] - a[0]), a[1] + 2 / 3 * (q[1] - a[1]))
    two = (b[0] + 2 / 3 * (q[0] - b[0]), b[1] + 2 / 3 * (q[1] - b[1]))
    return one, two, b


def _arc(a: Point, n: list[float], b: Point) -> Iterator[Segment]:
    """An arc of a circle or of an upright ellipse, as curves of at most a quarter turn (SVG 1.1, appendix F.6)."""
    rx, ry = abs(n[0]), abs(n[1])
    if rx == 0 or ry == 0 or a == b:
        yield "L", (b,)
        return
    # On the unit circle the chord runs from −h to h around its middle.
    hx, hy = (a[0] - b[0]) / (2 * rx), (a[1] - b[1]) / (2 * ry)
    reach = max(math.hypot(hx, hy), 1e-12)
    scale = max(1.0, reach)
    rx, ry, hx, hy, reach = rx * scale, ry * scale, hx / scale, hy / scale, reach / scale
    away = math.sqrt(max(0.0, 1 - reach**2)) / reach * (-1 if bool(n[3]) == bool(n[4]) else 1)
    cx, cy = away * hy, -away * hx
    begin, end = math.atan2(hy - cy, hx - cx), math.atan2(-hy - cy, -hx - cx)
    turn = (end - begin) % (2 * math.pi) if n[4] else -((begin - end) % (2 * math.pi))
    middle = ((a[0] + b[0]) / 2 + cx * rx, (a[1] + b[1]) / 2 + cy * ry)
    count = max(1, math.ceil(abs(turn) / (math.pi / 2) - 1e-9))
    for i in range(count):
        yield "C", _quarter(begin + turn * i / count, turn / count, middle, (rx, ry))


def _quarter(begin: float, turn: float, middle: Point, radii: Point) -> tuple[Point, Point, Point]:
    k = 4 / 3 * math.tan(turn / 4)
    end = begin + turn
    points = (
        (math.cos(begin) - k * math.sin(begin), math.sin(begin) + k * math.cos(begin)),
        (math.cos(end) + k * math.sin(end), math.sin(end) - k * math.cos(end)),
        (math.cos(end), math.sin(end)),
    )
    one, two, three = ((middle[0] + radii[0] * x, middle[1] + radii[1] * y) for x, y in points)
    return one, two, three
