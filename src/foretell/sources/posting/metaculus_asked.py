"""What Metaculus asks right now, with everything a forecast must fit: type, options, range, and what stands already."""

from dataclasses import dataclass
from datetime import datetime

from foretell.sources.markets.fields import is_set, moment, words
from foretell.sources.payload import Payload
from foretell.sources.posting.scale import OUTCOMES, Scale

CONTINUOUS = ("numeric", "discrete", "date")
OPEN = "open"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The forecast of this account that counts at the moment."""

    values: tuple[float | None, ...]
    """No and yes; or one per option; or the cumulative probabilities."""
    until: datetime | None = None
    """When it was or will be withdrawn."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question of a post. Forecasts go by the question's number, comments by the post's."""

    id: int
    post: int
    title: str
    kind: str
    status: str
    opens_at: datetime | None
    closes_at: datetime | None
    options: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    """Options in the order of a standing forecast: also those that were taken away."""
    scale: Scale | None = None
    standing: Standing | None = None
    grouped: bool = False

    def closed(self, now: datetime) -> str:
        """Why no forecast is taken at that moment; empty if one is."""
        if self.opens_at is None or self.opens_at > now:
            return "it is not open yet"
        if self.status != OPEN:
            return f"its status is {self.status}"
        return "it is closed" if self.closes_at is not None and self.closes_at <= now else ""


def asked_in(post: Payload) -> tuple[Asked, ...]:
    """The questions of a post as sent: one, or those of a group, or none where it cannot be forecast."""
    number = int(post.need("id").number())
    single, group = post.get("question"), post.get("group_of_questions")
    if single is not None:
        return (_asked(single, number),)
    rows = group.need("questions").items() if group is not None else []
    return tuple(_asked(row, number, grouped=True) for row in rows)


def _asked(row: Payload, post: int, *, grouped: bool = False) -> Asked:
    kind = row.need("type").text()
    ends = [at for name in ("scheduled_close_time", "actual_close_time") if (at := moment(row, name)) is not None]
    options = _labels(row, "options")
    return Asked(
        id=int(row.need("id").number()),
        post=post,
        title=words(row, "title"),
        kind=kind,
        status=row.need("status").text(),
        opens_at=moment(row, "open_time"),
        closes_at=min(ends, default=None),
        options=options,
        counted=_labels(row, "all_options_ever") or options,
        scale=_scale(row) if kind in CONTINUOUS else None,
        standing=_standing(row),
        grouped=grouped,
    )


def _labels(row: Payload, name: str) -> tuple[str, ...]:
    found = row.get(name)
    return () if found is None else tuple(item.text() for item in found.items())


def _scale(row: Payload) -> Scale:
    told, count = row.need("scaling"), row.get("inbound_outcome_count")
    zero = told.get("zero_point")
    try:
        return Scale(
            minimum=told.need("range_min").number(),
            maximum=told.need("range_max").number(),
            zero_point=None if zero is None else zero.number(),
            open_lower=is_set(row, "open_lower_bound"),
            open_upper=is_set(row, "open_upper_bound"),
            outcomes=OUTCOMES if count is None else int(count.number()),
        )
    except ValueError:
        pass
    told.wrong("a range")


def _standing(row: Payload) -> Standing | None:
    mine = row.get("my_forecasts")
    latest = mine.get("latest") if mine is not None else None
    values = latest.get("forecast_values") if latest is not None else None
    if latest is None or values is None:
        return None
    ends = latest.get("end_time")
    return Standing(
        values=tuple(None if item.value is None else item.probability() for item in values.items()),
        until=None if ends is None else ends.moment(),
    )
