"""Why the outside view says what it says, in words."""

from collections.abc import Sequence

from foretell.forecasters.combine.rows import sigmoid
from foretell.forecasters.outside.model import UNSEEN, Part
from foretell.forecasters.outside.rates import Kind, RateTable
from foretell.forecasters.outside.seen import HORIZON, Seen
from foretell.forecasters.outside.similar import ReferenceClass
from foretell.forecasters.outside.wording import TURNS

STRONGEST = 4
WORTH_TELLING = 0.03
"""Log-odds below which a reason is left out."""
LISTED = 3


def reasons_of_text(parts: Sequence[Part], seen: Seen, source: str | None) -> str:
    """The level, then the strongest parts with the direction and size of their pull; no source means any."""
    level = next(part.log_odds for part in parts if part.name == "level")
    whose = f"Questions of {source}" if source else "Market questions in general"
    told = [f"{whose} start at {_percent(level)} at this time."]
    ranked = sorted((p for p in parts if p.name not in ("level", UNSEEN)), key=lambda p: -abs(p.log_odds))
    strong = [p for p in ranked if abs(p.log_odds) >= WORTH_TELLING][:STRONGEST]
    for pull, way in (("Raised", 1), ("Lowered", -1)):
        these = [f"{_told(p.name, seen)} ({p.log_odds:+.2f})" for p in strong if p.log_odds * way > 0]
        if these:
            told.append(f"{pull}, in log-odds, by: {'; '.join(these)}.")
    if seen.days is None:
        told.append("No deadline is named.")
    return " ".join(told)


def reasons_of_rate(kind: Kind, table: RateTable) -> str:
    """Which class of data-set questions the rate was counted in."""
    days = "" if kind.days is None else f" at a horizon of {kind.days:.0f} days"
    name = f"{kind.source} {kind.subtype}".strip()
    return f"Base rate of {name}{days}, from about {table.seen(kind):.0f} independent outcomes."


def reasons_of_class(found: ReferenceClass) -> str:
    """The class as a share, and its nearest members."""
    if not len(found):
        return ""
    nearest = "; ".join(
        f"“{m.text.splitlines()[0][:90]}” ({'yes' if m.outcome else 'no'}, {m.known_on})"
        for m in found.members[:LISTED]
    )
    return f"{found.sentence[0].upper()}{found.sentence[1:]}, nearest: {nearest}."


def _percent(log_odds: float) -> str:
    return f"{float(sigmoid(log_odds)):.0%}"


def _told(name: str, seen: Seen) -> str:
    if name in TURNS:
        return TURNS[name].told
    if name in HORIZON.values():
        return f"{seen.days:.0f} days to the deadline"
    return {
        "length": "the length of the question",
        "by a date": "it has to happen by a date",
        "at a date": "it asks how things stand on a date",
        "stays until": "it has to last until a date",
        "no deadline": "no deadline is named",
    }.get(name, f"the words {name}")
