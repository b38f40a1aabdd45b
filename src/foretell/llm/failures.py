"""Two failures the journal must tell from the rest: a reply lost on the way, and a question never asked before."""

from foretell.llm.model import ModelBusy
from foretell.questions.problems import InputError


class ReplyLost(ModelBusy):
    """The request reached the provider and no usable reply came back: it may have been billed."""


class NotInJournal(InputError):
    """A replay asks for something that the recorded run never asked."""
