"""Messages of the Jupyter protocol, as parts on a wire."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from foretell.tools.notebook.zmtp import WireBroken

DELIMITER = b"<IDS|MSG>"
VERSION = "5.4"


@dataclass(frozen=True, kw_only=True)
class Message:
    """What a kernel said. Signatures are not checked: notebook code knows the key as well as its kernel does."""

    kind: str
    parent: str
    """The id of the request it belongs to."""
    content: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A field that should be a text; empty where it is something else."""
        value = self.content.get(name)
        return value if isinstance(value, str) else ""


def request(kind: str, name: str, content: Mapping[str, Any], key: bytes) -> list[bytes]:
    """The parts of a signed request with a given id."""
    header = {"msg_id": name, "msg_type": kind, "session": "foretell", "username": "foretell", "version": VERSION}
    parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
    signature = hmac.new(key, b"".join(parts), hashlib.sha256).hexdigest().encode()
    return [DELIMITER, signature, *parts]


def read(parts: Sequence[bytes]) -> Message:
    """The message in the parts that arrived, or `WireBroken`."""
    try:
        start = parts.index(DELIMITER)
        header, parent, content = (_table(parts[start + offset]) for offset in (2, 3, 5))
        return Message(kind=str(header.get("msg_type")), parent=str(parent.get("msg_id", "")), content=content)
    except (ValueError, IndexError, RecursionError):
        raise WireBroken("the kernel sent something that is no Jupyter message") from None


def _table(part: bytes) -> dict[str, Any]:
    found = json.loads(part)
    if not isinstance(found, dict):
        raise ValueError("not a table")
    return cast("dict[str, Any]", found)
