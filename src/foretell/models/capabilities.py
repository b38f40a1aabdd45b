"""Until when a model may know the world. A question that opened before is not a fair test of it."""

from dataclasses import dataclass
from datetime import date, datetime

from foretell.models.facts import facts_of
from foretell.models.names import ModelName
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError


@dataclass(frozen=True, kw_only=True)
class KnowledgeCutoffWarning:
    """Why a backtest with this model may be tainted by what the model remembers."""

    model: str
    cutoff: date | None
    """None where nothing is known about the model."""
    text: str


def knowledge_cutoff(model: str) -> date | None:
    """The last day a model may know about; a month counts to its end. None where nobody says."""
    return facts_of(ModelName.read(model).name).cutoff


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
        text = f"the question does not say when it opened, and {model} knows the world up to {cutoff}"
    elif AsOf.day(cutoff).admits(question_opened):
        opened = f"the question opened on {question_opened.date()}"
        source = facts_of(ModelName.read(model).name).source
        text = f"{opened}, but {model} may know the world up to {cutoff} ({source or 'by its provider'})"
    else:
        return None
    if strict:
        raise InputError(text, hint="choose later questions or an older model, or leave out --strict")
    return KnowledgeCutoffWarning(model=model, cutoff=cutoff, text=text)
