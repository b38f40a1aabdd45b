"""Files: atomic writes, verified downloads, the home folder, a shared DuckDB."""

import atexit
import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, cast

from foretell.frozen import frozen
from foretell.questions.errors import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BINARY = getattr(os, "O_BINARY", 0)
"""Prevents the conversion of line endings on some systems."""


# Atomic writes.


def write_atomically(path: Path, body: bytes, *, private: bool = False) -> None:
    """Write to a temporary file in the same directory and move it into place, so that no reader sees half a file.

    The user's umask determines who may read it. A private file, which may contain a key, is readable by its owner only.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name[:100]}.{secrets.token_hex(8)}"
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        _move(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _move(temporary: Path, path: Path) -> None:
    """Replace a file. Windows refuses that while another process reads the file, so it is tried for a second."""
    for pause in (0.01, 0.04, 0.2, 0.75):
        try:
            temporary.replace(path)
        except PermissionError:
            if sys.platform != "win32":
                raise
            sleep(pause)
        else:
            return
    temporary.replace(path)


def open_duckdb() -> "DuckDBPyConnection":
    """Return a connection with its own temporary tables. All share one database, because opening one takes 30 ms."""
    return _duckdb(os.getpid()).cursor()


@cache
def _duckdb(process: int) -> "DuckDBPyConnection":
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        # A file that was rewritten under the same name must not be read from memory.
        "enable_external_file_cache": False,
        # Memory of tables that are gone is given back soon, because what is computed from them needs it.
        "allocator_flush_threshold": "8MB",
        "allocator_bulk_deallocation_flush_threshold": "8MB",
    }
    database = duckdb.connect(":memory:", config=config)
    # If it still exists when the interpreter exits, the library prints long warnings about leaks.
    atexit.register(_duckdb.cache_clear)
    return database


# Downloaded files with their checksums: written atomically, and verified before every read.

MANIFEST = "manifest.json"


@frozen
class CachedFile:
    """Manifest entry of one file."""

    sha256: str
    bytes: int
    url: str
    etag: str = ""


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the user's home folder: $FORETELL_HOME, else a data folder that nothing cleans up.

    It holds runs, paid replies and the ledger besides the downloads. Earlier versions used the platform's cache folder,
    which other programs may empty; if one still exists there, it stays in use.

    >>> home_folder({"FORETELL_HOME": "/data/foretell"}).as_posix()
    '/data/foretell'
    """
    if home := environment.get("FORETELL_HOME"):
        return Path(home).expanduser()
    if sys.platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "foretell"
    if sys.platform == "darwin":
        home, earlier = Path.home() / "Library" / "Application Support", Path.home() / "Library" / "Caches"
    else:
        home = Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        earlier = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home, earlier = home / "foretell", earlier / "foretell"
    return earlier if earlier.is_dir() and not home.exists() else home


class DownloadCache:
    """Files below one directory, each recorded in its manifest."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def entries(self) -> dict[str, CachedFile]:
        """Return the manifest entries by relative file name; empty if there is no manifest."""
        path = self.root / MANIFEST
        try:
            body: Any = json.loads(path.read_text(encoding="utf-8"))
            files = cast(dict[str, dict[str, Any]], body["files"])
            return {name: CachedFile(**fields) for name, fields in files.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError("is damaged", path=path, hint="delete it; files are then downloaded again") from None

    def entry(self, name: str) -> CachedFile | None:
        """Return the entry of a file, if the file exists and is unchanged since it was written."""
        entry = self.entries().get(name)
        return entry if entry is not None and self.intact(name, entry) else None

    def intact(self, name: str, entry: CachedFile) -> bool:
        """Whether the file still has the recorded size and checksum."""
        try:
            body = (self.root / name).read_bytes()
        except FileNotFoundError:
            return False
        return len(body) == entry.bytes and sha256(body).hexdigest() == entry.sha256

    def path(self, name: str) -> Path:
        """Return the path of a recorded, unchanged file; otherwise raise an error that says what to do."""
        path = self.root / name
        recorded = self.entries().get(name)
        if recorded is None:
            raise InputError("has not been downloaded", path=path, hint="run foretell data pull")
        if not self.intact(name, recorded):
            raise InputError("is not what was downloaded", path=path, hint="run foretell data pull again")
        return path

    def put(self, name: str, body: bytes, *, url: str, etag: str = "") -> Path:
        """Store a file and record it. The manifest is updated only after the file is in place."""
        path = self.root / name
        write_atomically(path, body)
        entry = CachedFile(sha256=sha256(body).hexdigest(), bytes=len(body), url=url, etag=etag)
        files = {known: asdict(value) for known, value in {**self.entries(), name: entry}.items()}
        text = json.dumps({"files": dict(sorted(files.items()))}, indent=1)
        write_atomically(self.root / MANIFEST, text.encode())
        return path

    def names(self, folder: str) -> Iterator[str]:
        """Return the names of recorded files below a folder, sorted."""
        return (name for name in sorted(self.entries()) if name.startswith(f"{folder}/"))
