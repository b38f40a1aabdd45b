"""Files that appear whole or not at all, whatever happens while they are written."""

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, body: bytes, *, private: bool = False) -> None:
    """Write to a temporary file in the same directory and move it into place, so that no reader sees half a file.

    Who may read it is what the user's umask says; a private file, which may hold a key, is for its owner alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
