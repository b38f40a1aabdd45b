"""Until when a model may know the world. A question that opened before is no fair test of it."""

import re
from dataclasses import dataclass
from datetime import date, datetime

from foretell.models.names import ModelName
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError

_BLF = "reported by its provider as {month}, according to Table 2 of the BLF paper (2026)"


@dataclass(frozen=True, kw_only=True)
class KnowledgeCutoff:
    """The last day a model may know about, and who says so. A month counts to its end."""

    pattern: str
    """Regular expression searched in the model's bare name, in lower case."""
    day: date
    source: str


KNOWLEDGE_CUTOFFS = tuple(
    KnowledgeCutoff(pattern=pattern, day=date.fromisoformat(day), source=source)
    for pattern, day, source in (
        (r"gemini-3\.1-pro", "2025-01-31", _BLF.format(month="January 2025")),
        (r"gemini-3-flash", "2025-01-31", _BLF.format(month="January 2025")),
        (r"gemini-3-pro", "2025-01-31", "given as January 2025 on the model's page at ai.google.dev, read in 2026"),
        (r"claude-sonnet-4[.-]6", "2025-04-30", _BLF.format(month="April 2025")),
        (r"gpt-5\.4", "2025-06-30", _BLF.format(month="June 2025")),
        (
            r"gpt-5\.4",
            "2025-08-31",
            "given as 31 August 2025 on Box's model card (developer.box.com), later than in the BLF paper",
        ),
        (r"kimi-k2\.5", "2025-06-30", _BLF.format(month="June 2025")),
        (r"grok-4[.-]1-fast", "2025-05-31", _BLF.format(month="May 2025")),
    )
)


@dataclass(frozen=True, kw_only=True)
class KnowledgeCutoffWarning:
    """Why a backtest with this model may be tainted by what the model remembers."""

    model: str
    cutoff: KnowledgeCutoff | None
    """None where nothing is known about the model."""
    text: str


def knowledge_cutoff(model: str) -> KnowledgeCutoff | None:
    """The latest known cutoff of a model: where sources differ, the careful one counts."""
    name = ModelName.read(model).name.lower()
    return max((one for one in KNOWLEDGE_CUTOFFS if re.search(one.pattern, name)), key=lambda c: c.day, default=None)


def check_knowledge_cutoff(
    model: str, question_opened: datetime | None, *, strict: bool = False
) -> KnowledgeCutoffWarning | None:
    """A warning where a model may have read about a question's outcome; with `strict` an error instead."""
    if ModelName.read(model).provider == "scripted":
        return None
    cutoff = knowledge_cutoff(model)
    if cutoff is None:
        text = f"the knowledge cutoff of {model} is unknown"
    elif question_opened is None:
        text = f"the question does not say when it opened, and {model} knows the world up to {cutoff.day}"
    elif AsOf.day(cutoff.day).admits(question_opened):
        opened = f"the question opened on {question_opened.date()}"
        text = f"{opened}, but {model} may know the world up to {cutoff.day} ({cutoff.source})"
    else:
        return None
    if strict:
        raise InputError(text, hint="choose later questions or an older model, or leave out --strict")
    return KnowledgeCutoffWarning(model=model, cutoff=cutoff, text=text)
