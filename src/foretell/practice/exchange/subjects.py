"""What the events of a simulated world are about, in words."""

from dataclasses import dataclass
from typing import Literal

SubjectKind = Literal["yes-no", "race", "ladder", "weekly"]
SubjectSort = Literal["person", "firm", "team", "thing"]


@dataclass(frozen=True, kw_only=True)
class EventSubject:
    """A sort of event. Texts may name {place}, {person}, {firm}, {team}, {other_team}, {thing} and {day}."""

    kind: SubjectKind
    category: str
    title: str
    topic: str
    """What news are about, as a noun phrase."""
    tag: str
    """For tickers."""
    claim: str = ""
    """What comes true or not, of a yes-no event."""
    sort: SubjectSort = "person"
    """Who runs in a race."""
    level: float = 100.0
    """Where a quantity stands at first."""
    move: float = 0.04
    """How far it usually moves until the end, as a share of the level."""
    unit: str = "points"


SUBJECTS = (
    EventSubject(
        kind="yes-no",
        category="Politics",
        title="Will the {place} assembly pass the {thing} act by {day}?",
        topic="the {thing} act in the {place} assembly",
        claim="the {place} assembly passes the {thing} act",
        tag="ACT",
    ),
    EventSubject(
        kind="yes-no",
        category="Economics",
        title="Will the central bank of {place} cut its rate by {day}?",
        topic="the rate of the central bank of {place}",
        claim="the central bank of {place} cuts its rate",
        tag="RATE",
    ),
    EventSubject(
        kind="yes-no",
        category="Climate and Weather",
        title="Will a storm close the port of {place} before {day}?",
        topic="storms at the port of {place}",
        claim="a storm closes the port of {place}",
        tag="STORM",
    ),
    EventSubject(
        kind="yes-no",
        category="Sports",
        title="Will the {team} beat the {other_team} on {day}?",
        topic="the match of the {team} and the {other_team}",
        claim="the {team} beat the {other_team}",
        tag="GAME",
    ),
    EventSubject(
        kind="yes-no",
        category="Entertainment",
        title="Will {person} win the {thing} prize on {day}?",
        topic="{person} and the {thing} prize",
        claim="{person} wins the {thing} prize",
        tag="PRIZE",
    ),
    EventSubject(
        kind="yes-no",
        category="Science and Technology",
        title="Will the {thing} probe send a picture by {day}?",
        topic="the {thing} probe",
        claim="the {thing} probe sends a picture",
        tag="PROBE",
    ),
    EventSubject(
        kind="yes-no",
        category="Companies",
        title="Will {firm} name a new head by {day}?",
        topic="the head of {firm}",
        claim="{firm} names a new head",
        tag="HEAD",
    ),
    EventSubject(
        kind="race",
        category="Politics",
        title="Who wins the {place} mayoral election?",
        topic="the {place} mayoral election",
        tag="MAYOR",
    ),
    EventSubject(
        kind="race",
        category="Sports",
        title="Which team wins the {thing} Cup?",
        topic="the {thing} Cup",
        tag="CUP",
        sort="team",
    ),
    EventSubject(
        kind="race",
        category="Companies",
        title="Who buys {firm}?",
        topic="the sale of {firm}",
        tag="SALE",
        sort="firm",
    ),
    EventSubject(
        kind="race",
        category="Entertainment",
        title="Which film takes the {thing} award?",
        topic="the {thing} award",
        tag="FILM",
        sort="thing",
    ),
    EventSubject(
        kind="ladder",
        category="Economics",
        title="Where does the {place} share index close on {day}?",
        topic="the {place} share index",
        tag="INDEX",
        level=2400.0,
        move=0.03,
    ),
    EventSubject(
        kind="ladder",
        category="Climate and Weather",
        title="How warm does it get in {place} on {day}?",
        topic="the temperature in {place}",
        tag="TEMP",
        level=18.0,
        move=0.18,
        unit="degrees",
    ),
    EventSubject(
        kind="ladder",
        category="Entertainment",
        title="How many people see the film {thing} by {day}?",
        topic="the audience of the film {thing}",
        tag="SEEN",
        level=640.0,
        move=0.12,
        unit="thousand",
    ),
    EventSubject(
        kind="weekly",
        category="Economics",
        title="What does fuel cost in {place} at the end of the week?",
        topic="the price of fuel in {place}",
        tag="FUEL",
        level=180.0,
        move=0.03,
        unit="cents",
    ),
    EventSubject(
        kind="weekly",
        category="Climate and Weather",
        title="How high is the river at {place} at the end of the week?",
        topic="the river at {place}",
        tag="RIVER",
        level=310.0,
        move=0.08,
        unit="centimetres",
    ),
    EventSubject(
        kind="weekly",
        category="Science and Technology",
        title="How many people use the app {thing} at the end of the week?",
        topic="the users of the app {thing}",
        tag="USERS",
        level=520.0,
        move=0.05,
        unit="thousand",
    ),
)


def subjects(kind: SubjectKind) -> tuple[EventSubject, ...]:
    """Those of one kind."""
    return tuple(subject for subject in SUBJECTS if subject.kind == kind)
