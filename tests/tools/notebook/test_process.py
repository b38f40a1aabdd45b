"""Reading and removing untrusted directories, and the limits that the watchdog enforces."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from foretell.tools.notebook.limits import MIB, KernelLimits
from foretell.tools.notebook.process import collect_files, remove_directory
from foretell.tools.notebook.watchdog import (
    SandboxWatchdog,
    children,
    descendants,
    entries_in,
    fair_share,
    is_running,
    resident,
    unlinked,
)


def test_ordinary_files_are_collected(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.csv").write_bytes(b"1")
    (tmp_path / "c.txt").write_bytes(b"2")
    assert collect_files(tmp_path).files == {"a/b.csv": b"1", "c.txt": b"2"}


def test_files_beyond_the_limits_are_skipped(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}").write_bytes(b"x" * 10)
    files = collect_files(tmp_path, most_files=3)
    assert list(files.files) == ["0", "1", "2"]
    assert files.skipped["3"] == "there are more than 3 files"
    (tmp_path / "large").write_bytes(b"x" * 1_000)
    assert collect_files(tmp_path, most_bytes=100).skipped["large"] == "its 1,000 bytes are too many"
    deep = tmp_path.joinpath(*"abcdefghij")
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"")
    assert "it lies too deep" in collect_files(tmp_path).skipped.values()


def test_a_directory_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError):
        collect_files(tmp_path / "link")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "out").symlink_to(tmp_path / "real")
    files = collect_files(inside)
    assert files.files == {}
    assert "out" in files.skipped


def test_remove_directory_removes_exactly_the_directory(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept", encoding="utf-8")
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "link").symlink_to(outside)
    (top / "a" / "b" / "broken").symlink_to("/nowhere")
    os.mkfifo(top / "pipe")
    (top / "a" / "b").chmod(0)
    (top / "a").chmod(0o500)
    here = os.getcwd()
    os.chdir(top)
    try:
        for _ in range(1_200):
            os.mkdir("d")
            os.chdir("d")
        Path("bottom").write_text("x", encoding="utf-8")
    finally:
        os.chdir(here)
    remove_directory(top)
    assert not top.exists()
    assert (outside / "kept").read_text(encoding="utf-8") == "kept"


def test_remove_directory_does_not_follow_symlinks(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError):
        remove_directory(tmp_path / "link")
    assert (tmp_path / "real").is_dir()


@pytest.fixture
def family() -> "subprocess.Popen[bytes]":
    """A process with a child and a grandchild."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    shell = f'{sys.executable} -c "{code}" & wait'
    return subprocess.Popen(["/bin/sh", "-c", shell], start_new_session=True)


def killed(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, 9)
    process.wait()


def test_descendants_of_a_process_are_found(family: "subprocess.Popen[bytes]") -> None:
    try:
        for _ in range(200):
            pids = descendants(family.pid, most=100)
            if len(pids) >= 3:
                break
            time.sleep(0.02)
        assert pids[0] == family.pid
        assert len(pids) >= 3
        assert children(family.pid) == [pids[1]]
        assert len(descendants(family.pid, most=0)) == 1
        assert all(map(is_running, pids))
        assert sum(map(resident, pids)) >= sum(map(fair_share, pids)) > 0
    finally:
        killed(family)
    assert not is_running(family.pid)
    assert resident(family.pid) == fair_share(family.pid) == unlinked(family.pid) == 0
    assert descendants(family.pid, most=10) == [family.pid]


def test_deleted_open_files_are_counted(tmp_path: Path) -> None:
    before = unlinked(os.getpid())
    with (tmp_path / "hidden").open("wb", buffering=0) as file:
        file.write(b"x" * 2 * MIB)
        assert unlinked(os.getpid()) == before
        (tmp_path / "hidden").unlink()
        assert unlinked(os.getpid()) >= before + 2 * MIB
    assert entries_in(str(tmp_path), 1) == 0
    assert entries_in("/nowhere", 1) == 0


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (KernelLimits(processes=1), "more than the 1 processes"),
        (KernelLimits(memory=1), "MiB of memory, more than the 0 MiB"),
        (KernelLimits(disk_bytes=1), "files grew beyond"),
        (KernelLimits(disk_entries=2), "more than the 2 files"),
    ],
)
def test_watchdog_kills_a_process_beyond_its_limits(
    family: "subprocess.Popen[bytes]", limits: KernelLimits, message: str, tmp_path: Path
) -> None:
    for number in range(3):
        (tmp_path / str(number)).write_bytes(b"x" * 10_000)
    watcher = SandboxWatchdog(family.pid, (tmp_path,), limits, lambda: killed(family))
    watcher.start()
    watcher.join(20)
    assert watcher.breach is not None
    assert message in watcher.breach
    assert family.poll() is not None
    watcher.stop()


def test_watchdog_limits_the_directory_depth(family: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * 70).mkdir(parents=True)
    watcher = SandboxWatchdog(family.pid, (tmp_path,), KernelLimits(), lambda: killed(family))
    watcher.start()
    watcher.join(20)
    assert watcher.breach == "it nested directories more than 64 deep"


def test_watchdog_does_not_follow_symlinks(family: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    for number in range(50):
        (outside / str(number)).touch()
    (inside / "link").symlink_to(outside)
    watcher = SandboxWatchdog(
        family.pid, (inside, inside / "link"), KernelLimits(disk_entries=10), lambda: killed(family)
    )
    assert watcher._look() is None  # pyright: ignore[reportPrivateUsage]
    killed(family)


def test_watchdog_can_be_stopped(family: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    watcher = SandboxWatchdog(family.pid, (tmp_path, tmp_path / "gone"), KernelLimits(), lambda: None)
    watcher.start()
    time.sleep(0.3)
    watcher.stop()
    assert not watcher.is_alive()
    assert watcher.breach is None
    assert len(watcher.below) >= 1
    killed(family)
