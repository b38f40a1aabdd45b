"""Until when a model may know the world. A question that opened before is no fair test of it."""

import re
from dataclasses import dataclass
from datetime import date, datetime

from foretell.llm.names import ModelName
from foretell.questions.clock import AsOf
from foretell.questions.problems import InputError

_BLF = "reported by its provider as {month}, according to Table 2 of the BLF paper (2026)"


@dataclass(frozen=True, kw_only=True)
class Cutoff:
    """The last day a model may know about, and who says so. A month counts to its end."""

    pattern: str
    """Regular expression searched in the model's bare name, in lower case."""
    day: date
    source: str


CUTOFFS = (
    Cutoff(pattern=r"gemini-3\.1-pro", day=date(2025, 1, 31), source=_BLF.format(month="January 2025")),
    Cutoff(pattern=r"gemini-3-flash", day=date(2025, 1, 31), source=_BLF.format(month="January 2025")),
    Cutoff(
        pattern=r"gemini-3-pro",
        day=date(2025, 1, 31),
        source="given as January 2025 on the model's page at ai.google.dev, read in 2026",
    ),
    Cutoff(pattern=r"claude-sonnet-4[.-]6", day=date(2025, 4, 30), source=_BLF.format(month="April 2025")),
    Cutoff(pattern=r"gpt-5\.4", day=date(2025, 6, 30), source=_BLF.format(month="June 2025")),
    Cutoff(
        pattern=r"gpt-5\.4",
        day=date(2025, 8, 31),
        source="given as 31 August 2025 on Box's model card (developer.box.com), later than in the BLF paper",
    ),
    Cutoff(pattern=r"kimi-k2\.5", day=date(2025, 6, 30), source=_BLF.format(month="June 2025")),
    Cutoff(pattern=r"grok-4[.-]1-fast", day=date(2025, 5, 31), source=_BLF.format(month="May 2025")),
)


@dataclass(frozen=True, kw_only=True)
class CutoffWarning:
    """Why a backtest with this model may be tainted by what the model remembers."""

    model: str
    cutoff: Cutoff | None
    """None where nothing is known about the model."""
    text: str


def cutoff_of(model: str, extra: tuple[Cutoff, ...] = ()) -> Cutoff | None:
    """The latest known cutoff of a model: where sources differ, the careful one counts.

    >>> cutoff_of("openrouter:google/gemini-3-flash-preview").day.isoformat()
    '2025-01-31'
    """
    name = ModelName.read(model).name.lower()
    return max((one for one in (*extra, *CUTOFFS) if re.search(one.pattern, name)), key=lambda c: c.day, default=None)


def check_cutoff(
    model: str, question_opened: datetime | None, *, strict: bool = False, extra: tuple[Cutoff, ...] = ()
) -> CutoffWarning | None:
    """A warning where a model may have read about a question's outcome; with `strict` an error instead.

    >>> from foretell.questions.clock import instant
    >>> check_cutoff("openai:gpt-5.4", instant("2026-01-10")) is None
    True
    >>> print(check_cutoff("anthropic:claude-sonnet-4-6", instant("2025-03-01")).text)
    the question opened on 2025-03-01, but anthropic:claude-sonnet-4-6 may know the world up to 2025-04-30 (...)
    """
    if ModelName.read(model).provider == "scripted":
        return None
    cutoff = cutoff_of(model, extra)
    text = _problem(model, cutoff, question_opened)
    if text is None:
        return None
    if strict:
        raise InputError(text, hint="choose later questions or an older model, or leave out --strict")
    return CutoffWarning(model=model, cutoff=cutoff, text=text)


def _problem(model: str, cutoff: Cutoff | None, opened: datetime | None) -> str | None:
    if cutoff is None:
        return f"the knowledge cutoff of {model} is unknown"
    if opened is None:
        return f"the question does not say when it opened, and {model} knows the world up to {cutoff.day}"
    if not AsOf.day(cutoff.day).admits(opened):
        return None
    return (
        f"the question opened on {opened.date()}, but {model} may know the world up to {cutoff.day} ({cutoff.source})"
    )
