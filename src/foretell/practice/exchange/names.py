"""Names that nobody bears: places, people, companies, teams and things made of syllables."""

from collections.abc import Sequence

import numpy as np


def several(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


ONSETS = several("B Br C D Dr F Fl G Gr H J K Kr L M N P Pr Qu R S Sk St T Tr V W Z Th Y")
VOWELS = several("a e i o u ae ei io ou a e o")
CODAS = several("ld lm n nd nsk r rk rm rn rth s sk st th v x l m")
BETWEEN = several("l m n r v d")
PLACES = several("berg dal fell ford gard holm mere mouth stad vik wick haven")
FIRST = several(
    "Ada Bo Cleo Dorn Edda Finn Gwen Hal Ilse Joss Kaja Lev Mina Nils Orla Per Quin Rhea Sven Tova Ulf Vera"
)
TEAMS = several("Herons Foxes Rovers Comets Otters Anvils Kites Bisons Lynxes Ravens")
FIRMS = several("Works Labs Motors Foods Lines Systems Textiles Energy")


def one_of(choices: Sequence[str], rng: np.random.Generator) -> str:
    """Any of them."""
    return choices[int(rng.integers(len(choices)))]


def stem(rng: np.random.Generator) -> str:
    """A word that means nothing."""
    return "".join(one_of(part, rng) for part in (ONSETS, VOWELS, BETWEEN, VOWELS, CODAS))


def place(rng: np.random.Generator) -> str:
    """A town or a country."""
    return stem(rng) + one_of(PLACES, rng)


def person(rng: np.random.Generator) -> str:
    """First and last name."""
    return f"{one_of(FIRST, rng)} {stem(rng)}"


def firm(rng: np.random.Generator) -> str:
    """A company."""
    return f"{stem(rng)} {one_of(FIRMS, rng)}"


def team(rng: np.random.Generator) -> str:
    """A club."""
    return f"{stem(rng)} {one_of(TEAMS, rng)}"


def made_up(rng: np.random.Generator) -> dict[str, str]:
    """One name of every sort, for a sentence to choose from."""
    return {
        "place": place(rng),
        "person": person(rng),
        "firm": firm(rng),
        "team": team(rng),
        "other_team": team(rng),
        "thing": stem(rng),
    }
