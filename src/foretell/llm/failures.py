"""Failures the journal must tell from the rest: a reply lost, a question never asked, one that another is asking."""

from foretell.llm.model import ModelBusy
from foretell.questions.problems import InputError


class ReplyLost(ModelBusy):
    """The request reached the provider and no usable reply came back: it may have been billed."""


class NotInJournal(InputError):
    """A replay asks for something that the recorded run never asked."""


class AskedElsewhere(Exception):
    """Another process that shares the journal is asking this at the moment; its answer will do."""
