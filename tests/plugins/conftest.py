"""Install a package for a test: its code and its entry points, laid out as pip does."""

import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from foretell import plugins
from foretell.metrics import METRICS

EXAMPLE = Path(__file__).parents[1] / "example_plugin"
Install = Callable[[Mapping[str, str], Mapping[str, Mapping[str, str]]], Path]
"""Installs files and entry points (kind → name → place) as a package; returns its folder."""


def example_files() -> dict[str, str]:
    return {path.name: path.read_text() for path in (EXAMPLE / "foretell_example").glob("*.py")}


def example_points() -> dict[str, dict[str, str]]:
    announced = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    return {group.removeprefix("foretell."): points for group, points in announced.items()}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a package on the path of this process, and remove it after the test."""

    before = dict(METRICS)  # A board adds the metrics of other packages to this table.

    def forget() -> None:
        plugins._announcements.cache_clear()
        for name in METRICS.keys() - before.keys():
            del METRICS[name]
        for name in [name for name in sys.modules if name.partition(".")[0] == "foretell_example"]:
            del sys.modules[name]

    def put(files: Mapping[str, str], points: Mapping[str, Mapping[str, str]]) -> Path:
        site = tmp_path / "site"
        package, info = site / "foretell_example", site / "foretell_example-1.0.dist-info"
        package.mkdir(parents=True)
        info.mkdir()
        for name, text in files.items():
            (package / name).write_text(text)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foretell-example\nVersion: 1.0\n")
        groups = [
            f"[foretell.{kind}]\n" + "".join(f"{name} = {place}\n" for name, place in rows.items())
            for kind, rows in points.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(groups))
        monkeypatch.syspath_prepend(site)
        forget()
        return site

    yield put
    forget()


@pytest.fixture
def example(install: Install) -> Path:
    """The whole example package, installed."""
    return install(example_files(), example_points())
