"""Files that appear whole or not at all, whatever happens while they are written."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, body: bytes) -> None:
    """Write to a temporary file in the same directory and move it into place, so that no reader sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
