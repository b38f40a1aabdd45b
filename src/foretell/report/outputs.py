"""Results as files: the suffix of a file's name says the format."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from foretell.data.files import write_atomically
from foretell.data.untrusted import rows_as_csv
from foretell.questions.errors import InputError


class Writable(Protocol):
    """What every result can say; `to_html`, `to_markdown` and `to_svg` are there where a result has such a form."""

    def to_json(self) -> str: ...  # noqa: D102

    def rows(self) -> list[dict[str, Any]]: ...  # noqa: D102


def write_outputs(result: Writable, paths: Sequence[Path]) -> list[Path]:
    """Write a result to files, each in the format that its suffix says; nothing is written where one is wrong."""
    for path in paths:
        if not can_write(result, path.suffix):
            known = ", ".join(suffix for suffix in WRITERS if can_write(result, suffix))
            raise InputError("cannot write this kind of file", path=path, hint=f"known suffixes are {known}")
    for path in paths:
        if path.parent != Path():
            path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[path.suffix](result, path)
    return list(paths)


def can_write(result: Writable, suffix: str) -> bool:
    """Whether a result has the form that a suffix asks for.

    >>> from foretell.operations.result import Result
    >>> can_write(Result(), ".csv"), can_write(Result(), ".html")
    (True, False)
    """
    methods = _METHODS.get(suffix)
    return suffix in WRITERS and (methods is None or any(hasattr(result, method) for method in methods))


def _text(method: str) -> Callable[[Any, Path], None]:
    def write(result: Any, path: Path) -> None:
        text: str = getattr(result, method)()
        write_atomically(path, text.encode())

    return write


def _csv(result: Any, path: Path) -> None:
    write_atomically(path, rows_as_csv(result.rows()).encode())


def _jsonl(result: Any, path: Path) -> None:
    import json

    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in result.rows())
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _parquet(result: Any, path: Path) -> None:
    """By way of CSV: DuckDB finds the types of the columns."""
    import tempfile

    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as con:
        plain, made = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        plain.write_text(rows_as_csv(result.rows(), let_out=lambda cell: cell), encoding="utf-8")
        con.read_csv(str(plain), header=True).write_parquet(str(made))
        write_atomically(path, made.read_bytes())


def _figure(result: Any, path: Path) -> None:
    from foretell.report.charts.svg import export_figure

    export_figure(result.to_svg(), path)


def _pdf(result: Any, path: Path) -> None:
    if hasattr(result, "to_svg"):
        return _figure(result, path)
    from foretell.report.document import write_pdf

    write_pdf(result.to_html(), path)


WRITERS: Mapping[str, Callable[[Any, Path], None]] = {
    ".json": _text("to_json"),
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".html": _text("to_html"),
    ".md": _text("to_markdown"),
    ".svg": _text("to_svg"),
    ".png": _figure,
    ".pdf": _pdf,
}
"""Suffix → how a result is written as such a file."""
_METHODS: Mapping[str, tuple[str, ...]] = {
    ".html": ("to_html",),
    ".md": ("to_markdown",),
    ".svg": ("to_svg",),
    ".png": ("to_svg",),
    ".pdf": ("to_svg", "to_html"),
}
"""Suffixes that not every result has a form for; a PDF is the chart of a result, else its page."""
