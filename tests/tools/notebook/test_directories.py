"""What an enemy leaves in a directory is read and removed without harm."""

import os
from pathlib import Path

import pytest

from foretell.tools.notebook.process import collect_files, remove_directory


def test_ordinary_files_are_collected(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.csv").write_bytes(b"1")
    (tmp_path / "c.txt").write_bytes(b"2")
    assert collect_files(tmp_path).files == {"a/b.csv": b"1", "c.txt": b"2"}


def test_too_many_too_large_and_too_deep(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}").write_bytes(b"x" * 10)
    found = collect_files(tmp_path, most_files=3)
    assert list(found.files) == ["0", "1", "2"]
    assert found.left["3"] == "there are more than 3 files"
    (tmp_path / "large").write_bytes(b"x" * 1_000)
    assert collect_files(tmp_path, most_bytes=100).left["large"] == "its 1,000 bytes are too many"
    deep = tmp_path.joinpath(*"abcdefghij")
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"")
    assert "it lies too deep" in collect_files(tmp_path).left.values()


def test_a_directory_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError):
        collect_files(tmp_path / "link")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "out").symlink_to(tmp_path / "real")
    found = collect_files(inside)
    assert found.files == {}
    assert "out" in found.left


def test_everything_can_be_removed_and_nothing_else_is(tmp_path: Path) -> None:
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


def test_a_link_is_not_removed_in_place_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError):
        remove_directory(tmp_path / "link")
    assert (tmp_path / "real").is_dir()
