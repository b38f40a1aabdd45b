"""Foretell on Windows, as far as it can be tried elsewhere: without the modules and functions that Windows lacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from foretell.data import files

WITHOUT_UNIX = """
import asyncio, fcntl, importlib, os, pkgutil, re, signal, subprocess, sys, types
from contextlib import suppress
from pathlib import Path

import foretell

folder = Path(foretell.__path__[0])
texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
names = {name for text in texts for name in re.findall(r"^ *(?:import|from) ([\\w.]+)", text, re.M)}
unix = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty", "uvloop")
# Other packages know which system this is. They are imported as they are here.
for name in sorted(names - {"msvcrt", *unix}):
    if not name.startswith("foretell"):
        with suppress(ImportError):
            importlib.import_module(name)


def locking(file, mode, length):
    fcntl_flock(file, LOCK_EX | LOCK_NB if mode == 2 else LOCK_EX)


fcntl_flock, LOCK_EX, LOCK_NB = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_NB
windows = types.SimpleNamespace(LK_LOCK=1, LK_NBLCK=2, locking=locking)
sys.modules.update(dict.fromkeys(unix), msvcrt=windows)
sys.platform = "win32"
for name in "fork forkpty getuid geteuid getgid killpg setsid uname sysconf statvfs chown fchmod mkfifo nice".split():
    delattr(os, name)
for name in "O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK".split():
    delattr(os, name)
for name in "SIGKILL SIGUSR1 SIGUSR2 SIGHUP SIGALRM SIGCHLD SIGXCPU".split():
    delattr(signal, name)

for module in pkgutil.walk_packages(foretell.__path__, "foretell."):
    importlib.import_module(module.name)

from foretell.cli.main import cli
from foretell.models.database.liveness import FileLiveness
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.sandbox import SandboxUnavailable


async def start_notebooks(unsandboxed):
    async with KernelPool(unsandboxed=unsandboxed):
        pass


for command in (
    ["score", "table.csv"],
    ["ask", "Will it rain?", "--model", "none", "--closes", "2030-01-01", "--price", "0.3"],
):
    cli(command, standalone_mode=False)
first, second = FileLiveness("some.db"), FileLiveness("some.db")
assert second.gone([first.id, 5]) == {5}
first.close()
assert second.gone([first.id]) == {first.id}
second.close()
assert not list(Path().glob("some.db-alive-*"))
for unsandboxed in (True, False):
    try:
        asyncio.run(start_notebooks(unsandboxed))
    except SandboxUnavailable as error:
        print(error)
"""


def test_every_module_is_imported_and_commands_run_without_unix(tmp_path: Path) -> None:
    rows = "".join(f"a,q{n},0.{n},{n % 2}\n" for n in range(1, 10))
    (tmp_path / "table.csv").write_text(f"forecaster,question,p,outcome\n{rows}", encoding="utf-8")
    (tmp_path / "settings.toml").write_text("network = false\n", encoding="utf-8")
    environment = {name: str(tmp_path) for name in ("HOME", "FORETELL_HOME")}
    end = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert end.returncode == 0, end.stderr
    assert "Brier" in end.stdout
    assert end.stdout.count("notebooks need Linux") == 2


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [({}, "Müller"), ({"PYTHONIOENCODING": "cp1252"}, "Müller"), ({"PYTHONIOENCODING": "ascii"}, "M?ller")],
)
def test_a_command_prints_into_files_and_pipes_of_every_encoding(
    encoding: dict[str, str], shown: str, tmp_path: Path
) -> None:
    rows = "".join(f"Müller,q{n},0.{n},{n % 2}\r\n" for n in range(1, 10))
    (tmp_path / "table.csv").write_text(f"forecaster,question,p,outcome\r\n{rows}", encoding="utf-8")
    # As on Windows, pipes are not UTF-8.
    region = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "FORETELL_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "foretell", "score", "table.csv"],
        capture_output=True, cwd=tmp_path, env={**os.environ, **region, **encoding}, check=False,
    )  # fmt: skip
    text = done.stdout.decode(encoding.get("PYTHONIOENCODING", "utf-8"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert shown in text
    assert "Differences are on the targets" in text


def test_a_folder_outside_the_encoding_of_the_region_ends_in_one_line_with_advice(tmp_path: Path) -> None:
    folder = tmp_path / "früh"
    folder.mkdir()
    (folder / "run.yaml").write_text("questions: demo\nforecaster: always\n", encoding="utf-8")
    region = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "FORETELL_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "foretell", "run", "run.yaml"]
    done = subprocess.run(command, capture_output=True, cwd=folder, env={**os.environ, **region}, check=False)
    assert done.returncode == 2, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"PYTHONUTF8=1" in done.stderr.splitlines()[-1]


def test_a_file_that_is_being_read_is_replaced_when_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tree.json"
    replace, refusals = Path.replace, [PermissionError("in use")] * 3

    def refusing(temporary: Path, path: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return replace(temporary, path)

    monkeypatch.setattr(Path, "replace", refusing)
    monkeypatch.setattr(files, "sleep", lambda seconds: None)
    with pytest.raises(PermissionError):
        files.write_atomically(file, b"old")
    monkeypatch.setattr(sys, "platform", "win32")
    files.write_atomically(file, b"new")
    assert (file.read_bytes(), refusals, list(tmp_path.iterdir())) == (b"new", [], [file])
