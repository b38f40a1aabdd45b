"""What the events of a simulated world are about: a table of subjects, and names that nobody bears."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

SubjectKind = Literal["yes-no", "race", "ladder", "weekly"]


@dataclass(frozen=True, kw_only=True)
class EventSubject:
    """A sort of event. Texts may name {place}, {person}, {firm}, {team}, {other_team}, {thing} and {day}."""

    kind: SubjectKind
    category: str
    tag: str
    """For tickers."""
    title: str
    topic: str
    """What news are about, as a noun phrase."""
    claim: str
    """What comes true or not, of a yes-no event."""
    sort: str
    """Who runs in a race: person, firm, team or thing."""
    level: float
    """Where a quantity stands at first."""
    move: float
    """How far it usually moves until the end, as a share of the level."""
    unit: str


@cache
def subjects(kind: SubjectKind) -> tuple[EventSubject, ...]:
    """Those of one kind, as the table has them."""
    rows = csv.DictReader(
        files("foretell.practice.exchange").joinpath("subjects.csv").read_text(encoding="utf-8").splitlines()
    )
    numbers = ("level", "move")
    return tuple(
        EventSubject(**{name: float(value) if name in numbers else value for name, value in row.items()})  # pyright: ignore[reportArgumentType]
        for row in rows
        if row["kind"] == kind
    )


def _words(text: str) -> list[str]:
    return text.split()


ONSETS = _words("B Br C D Dr F Fl G Gr H J K Kr L M N P Pr Qu R S Sk St T Tr V W Z Th Y")
VOWELS = _words("a e i o u ae ei io ou a e o")
CODAS = _words("ld lm n nd nsk r rk rm rn rth s sk st th v x l m")
BETWEEN = _words("l m n r v d")
PLACES = _words("berg dal fell ford gard holm mere mouth stad vik wick haven")
FIRST = _words("Ada Bo Cleo Dorn Edda Finn Gwen Hal Ilse Joss Kaja Lev Mina Nils Orla Per Quin Rhea Sven Tova Ulf Vera")
TEAMS = _words("Herons Foxes Rovers Comets Otters Anvils Kites Bisons Lynxes Ravens")
FIRMS = _words("Works Labs Motors Foods Lines Systems Textiles Energy")


def one_of(choices: Sequence[str], rng: np.random.Generator) -> str:
    """Any of them."""
    return choices[int(rng.integers(len(choices)))]


def made_up_name(sort: str, rng: np.random.Generator) -> str:
    """A name of a place, person, firm, team or thing, made of syllables."""
    first = f"{one_of(FIRST, rng)} " if sort == "person" else ""
    stem = "".join(one_of(part, rng) for part in (ONSETS, VOWELS, BETWEEN, VOWELS, CODAS))
    match sort:
        case "place":
            return stem + one_of(PLACES, rng)
        case "firm":
            return f"{stem} {one_of(FIRMS, rng)}"
        case "team":
            return f"{stem} {one_of(TEAMS, rng)}"
        case _:
            return first + stem


def made_up_names(rng: np.random.Generator) -> dict[str, str]:
    """One name of every sort, for a sentence to choose from."""
    return {
        name: made_up_name(name.removeprefix("other_"), rng)
        for name in ("place", "person", "firm", "team", "other_team", "thing")
    }
