"""Arrays of an arena in a file between readings, with a head that says what they were made of."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from foretell.llm.database.port import Database
from foretell.sources.whole_file import write_whole

SCHEMA = 1
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One file; without a folder nothing is kept. Whether what it holds is still right is for its reader to ask."""

    folder: Path | None
    database: Database
    arena: str
    part: str

    def load(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
        """What was kept of this very arena, or None."""
        if self.folder is None or not self._path(self.folder).exists():
            return None
        try:
            with np.load(self._path(self.folder), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
                head = json.loads(arrays.pop("head").tobytes())
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        mine = self._whose()
        return (head, arrays) if all(head.get(name) == value for name, value in mine.items()) else None

    def save(self, head: Mapping[str, Any], arrays: Arrays) -> None:
        """Keep these instead."""
        if self.folder is None:
            return
        out = BytesIO()
        told = json.dumps({**self._whose(), **head}, ensure_ascii=False).encode()
        named: dict[str, Any] = {"head": np.frombuffer(told, np.uint8), **arrays}
        np.savez(out, **named)
        write_whole(self._path(self.folder), out.getvalue())

    def _path(self, folder: Path) -> Path:
        mark = hashlib.sha256(f"{self.database.place}\0{self.arena}".encode()).hexdigest()[:16]
        return folder / f"{mark}-{self.part}.npz"

    def _whose(self) -> dict[str, Any]:
        created = self.database.read("select created from arena where name = ?", (self.arena,))
        return {
            "schema": SCHEMA,
            "place": self.database.place,
            "arena": self.arena,
            "created": created[0][0] if created else "",
        }
