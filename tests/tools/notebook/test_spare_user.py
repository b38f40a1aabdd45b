"""Root becomes an ordinary user, who can reach what he needs and nothing that was closed."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foretell.tools.notebook import sandbox as module
from foretell.tools.notebook.sandbox import SPARE_USERS, becoming, closed_above, spare_user


def test_spare_users_are_only_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "geteuid", lambda: 1_000)
    assert spare_user() is None
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "_is_really_root", lambda: True)
    assert spare_user() in SPARE_USERS
    monkeypatch.setattr(module, "_is_really_root", lambda: False)
    assert spare_user() is None


@pytest.mark.parametrize(
    ("users", "really"),
    [("0 0 4294967295\n", True), ("0 100000 65536\n", False), ("1000 1000 1\n0 5 1\n", False), ("0 0 1\n", True)],
)
def test_a_containers_root_is_no_root(users: str, really: bool, tmp_path: Path) -> None:
    (tmp_path / "uid_map").write_text(users, encoding="utf-8")
    assert module._is_really_root(tmp_path / "uid_map") is really  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_closed_directories_are_found(folder: Path) -> None:
    inner = folder / "closed" / "it's open" / "inner"
    inner.mkdir(parents=True)
    assert closed_above(inner) is None
    (folder / "closed").chmod(0o700)
    (folder / "closed" / "it's open").chmod(0o700)
    assert closed_above(inner) == folder / "closed"


def test_where_nothing_is_closed_nothing_is_mounted(folder: Path) -> None:
    found = becoming(61_500, [Path("/usr/lib"), folder], folder)
    assert found[0] == "setpriv"
    assert "--reuid=61500" in found


def test_the_user_sees_what_is_needed_and_nothing_else_of_what_was_closed(folder: Path, sandboxed: None) -> None:
    needed = folder / "closed" / "it's open" / "needed"
    needed.mkdir(parents=True)
    (needed / "file").write_text("needed", encoding="utf-8")
    (folder / "closed" / "secret").write_text("secret", encoding="utf-8")
    (folder / "stage").mkdir()
    (folder / "closed").chmod(0o700)
    command = becoming(61_500, [needed], folder / "stage")
    assert command[0] == "unshare"
    if os.geteuid() != 0:
        return  # only root can do it, and only root needs to
    code = f"id -u; cat {shlex.quote(str(needed / 'file'))}; echo; ls {shlex.quote(str(folder / 'closed'))}"
    done = subprocess.run([*command, "sh", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["61500", "needed", "it's", "open"], done.stderr
    assert (folder / "closed" / "secret").read_text(encoding="utf-8") == "secret"
    assert sorted(path.name for path in (folder / "closed").iterdir()) == ["it's open", "secret"]
    assert list((folder / "stage").iterdir()) == []
