"""Knowledge cutoffs of models. A question that opened before the cutoff is not a fair test of the model."""

from dataclasses import dataclass
from datetime import date, datetime

from foretell.models.facts import facts_of
from foretell.models.names import ModelName
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError


@dataclass(frozen=True, kw_only=True)
class KnowledgeCutoffWarning:
    """Explains why a backtest with this model may be contaminated by what the model remembers."""

    model: str
    cutoff: date | None
    """None if the cutoff is unknown."""
    text: str


def knowledge_cutoff(model: str) -> date | None:
    """The last day a model may know about, or None if unknown. A month counts to its end."""
    return facts_of(ModelName.read(model).name).cutoff


def check_knowledge_cutoff(
    model: str, question_opened: datetime | None, *, strict: bool = False
) -> KnowledgeCutoffWarning | None:
    """Warn if a model may have read about a question's outcome; with `strict`, raise an error instead."""
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
        raise InputError(text, hint="choose later questions or an older model, or turn strict off")
    return KnowledgeCutoffWarning(model=model, cutoff=cutoff, text=text)
