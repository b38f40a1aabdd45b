"""Who writes the news, and in which words."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Outlet:
    """A paper with its habits."""

    name: str
    error: float
    """Of what it sees, in logits."""
    boldness: float = 1.0
    """Above 1 it makes more of things than there is."""


OUTLETS = (
    Outlet(name="Courier", error=0.25),
    Outlet(name="Gazette", error=0.5),
    Outlet(name="Observer", error=0.6, boldness=0.8),
    Outlet(name="Buzz", error=0.9, boldness=1.6),
)
TITLES = (
    "{topic}: {short} on {day}",
    "{short}, as of {day}: where {topic} stands",
    "How {topic} looked on {day}: {short}",
    "{outlet} on {topic}, {day}: {short}",
)
FIGURES = (
    "These figures are of {day}.",
    "That is how it looked on {day}, before anything else came out.",
    "The survey behind it was closed on {day}.",
    "It was compiled from three sources by {day}.",
    "Nobody contradicted it until {day}.",
)
BACKGROUND = (
    "Those close to the matter asked not to be named.",
    "A spokesman declined to comment at first and then spoke for an hour.",
    "The next report is expected within days, if the weather holds.",
    "People in the street had other worries, as they usually do.",
    "Older figures are of little use by now, one expert warned.",
    "An earlier version of this report named another source.",
)
IDLE_TITLES = (
    "{number} pictures: around {topic}",
    "A day with those who follow {topic}, part {number}",
    "{topic}: a look back at {number} years",
    "Quiz: {number} questions about {topic}",
)
IDLE = (
    "A reader remembers {topic} from {number} years ago.",
    "Around {topic} a market has grown for badges, {number} kinds of them.",
    "Tickets, parking and {number} places to eat: all you need to know about {topic}.",
    "The museum shows {number} objects connected with {topic} until autumn.",
    "Nothing new was heard about {topic}, said {number} people whom nobody had asked.",
)
CLOSING = "it is decided"
