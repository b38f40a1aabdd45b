"""One line of the ledger: what was meant to be sent, or what became of it, sealed to the line before it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Kind = Literal["intention", "receipt", "refusal", "absence"]
"""Before sending: an intention. After it: taken, refused, or found not to have arrived."""
START = "0" * 64
"""What the first entry follows."""
SHORTEST = 12
"""Letters of a hash that are enough to name an entry."""


def canonical(value: Any) -> str:
    """The one way to write a value: keys in order, no spaces, no NaN.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical form.

    >>> digest_of({}) == hashlib.sha256(b"{}").hexdigest()
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An entry that has no place in the ledger yet."""

    kind: Kind
    platform: str
    account: str
    question: str
    part: str
    """What of the question: its forecast, or a comment."""
    content: Mapping[str, Any]
    """What is sent; in an answer, the number of its intention, the digest of what was sent, and what was said."""


@dataclass(frozen=True, kw_only=True)
class Entry(Draft):
    """An entry in its place. Its hash covers all other fields, the hash of the entry before it among them."""

    number: int
    at: str
    digest: str
    """SHA-256 of the content."""
    previous: str
    hash: str

    @classmethod
    def sealed(cls, draft: Draft, *, number: int, at: str, previous: str) -> "Entry":
        """The entry with its hashes."""
        # `vars` and not `asdict`: copying a long content took longer than hashing it.
        body: dict[str, Any] = dict(vars(draft))
        body |= {"number": number, "at": at, "digest": digest_of(draft.content), "previous": previous}
        return cls(**body, hash=digest_of(body))

    @classmethod
    def read(cls, line: str) -> "Entry":
        """An entry as written; a `ValueError` says what is wrong with the line, whatever it is."""
        body: Any = json.loads(line)
        if not isinstance(body, dict) or sorted(body) != sorted(field.name for field in fields(cls)):
            raise ValueError("it does not have the fields of an entry")
        entry = cls(**body)
        if entry.kind not in get_args(Kind) or type(entry.number) is not int or not isinstance(entry.content, dict):
            raise ValueError("its fields hold something else than they should")
        return entry

    def line(self) -> str:
        """As written."""
        return canonical(vars(self))

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What later entries about the same thing share."""
        return self.platform, self.account, self.question, self.part

    @property
    def head(self) -> "Head":
        """A note of this entry."""
        return Head(number=self.number, hash=self.hash)

    def fault(self) -> str:
        """What of it was changed after it was sealed; empty if nothing was."""
        if digest_of(self.content) != self.digest:
            return "its content was changed"
        body = dict(vars(self))
        del body["hash"]
        return "" if digest_of(body) == self.hash else "it was changed"


@dataclass(frozen=True, kw_only=True)
class Head:
    """A note of the last entry, to be kept elsewhere: whoever has it can tell that nothing was cut off.

    >>> Head.read("3:" + "ab" * 32)
    Head(number=3, hash='abab...')
    """

    number: int | None
    hash: str

    @classmethod
    def read(cls, text: str) -> "Head":
        """From `NUMBER:HASH`, or a hash or its beginning alone; a `ValueError` where it is neither."""
        number, found, hash = text.strip().rpartition(":")
        hash = hash.lower()
        if len(hash) < SHORTEST or not set(hash) <= set("0123456789abcdef") or (found and not number.isdigit()):
            raise ValueError(f"{text!r} is not a head such as 12:9f86d081884c…, as foretell ledger head prints it")
        return cls(number=int(number) if found else None, hash=hash)

    def names(self, entry: Entry) -> bool:
        """Whether it is a note of this entry."""
        return entry.hash.startswith(self.hash) and self.number in (None, entry.number)

    def __str__(self) -> str:
        """As printed and noted."""
        return f"{self.number}:{self.hash}" if self.number is not None else self.hash
