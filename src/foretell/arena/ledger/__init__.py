"""A record of what was handed in, in which nothing can be changed afterwards without being seen."""

from foretell.arena.ledger.chain import Verdict, verify
from foretell.arena.ledger.entry import Draft, Entry, Head
from foretell.arena.ledger.file import Ledger

__all__ = ["Draft", "Entry", "Head", "Ledger", "Verdict", "verify"]
