import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from foretell.report.html import make_environment


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "page.html").write_text("{{ name|shown }} 1", encoding="utf-8")
    return tmp_path


def compiled(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "page.html"]


def rendered(folder: Path, shown: str = "{}") -> str:
    return make_environment(folder, filters={"shown": shown.format}).get_template("page.html").render(name="a")


def test_a_template_is_compiled_once(folder: Path) -> None:
    assert rendered(folder) == "a 1"
    (file,) = compiled(folder)
    assert file.parent == Path(cache_from_source(str(folder / "page.html"))).parent
    body, written = file.read_bytes(), file.stat().st_mtime_ns
    assert rendered(folder, "<{}>") == "&lt;a&gt; 1"  # Filters are those of the environment that renders it.
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (body, written)


def test_a_changed_template_is_compiled_again(folder: Path) -> None:
    rendered(folder)
    before = compiled(folder)[0].read_bytes()
    (folder / "page.html").write_text("{{ name|shown }} 2", encoding="utf-8")
    assert rendered(folder) == "a 2"
    assert compiled(folder)[0].read_bytes() != before


@pytest.mark.parametrize(
    "damage", [lambda body: b"", lambda body: b"x", lambda body: body[:40], lambda body: body[:-5]]
)
def test_a_damaged_file_is_replaced(folder: Path, damage: object) -> None:
    assert callable(damage)
    rendered(folder)
    (file,) = compiled(folder)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert rendered(folder) == "a 1"
    assert file.read_bytes() == whole


def test_templates_are_rendered_if_their_compiled_form_cannot_be_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "__pycache__").write_text("a file where the folder would be", encoding="utf-8")
    assert rendered(folder) == "a 1"
    (folder / "__pycache__").unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(folder) == "a 1"
    assert compiled(folder) == []
