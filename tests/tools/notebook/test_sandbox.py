"""The command line of the sandbox, and what it makes of an environment."""

import sys
from pathlib import Path

import pytest

from foretell.tools.notebook.limits import KernelLimits, OutputCaps
from foretell.tools.notebook.sandbox import RunDirectory, Sandbox, SandboxUnavailable, python_environment, variables

RUN = RunDirectory(top=Path("/tmp/fn-1"))


def words(sandbox: Sandbox) -> list[str]:
    return sandbox.command(RUN, ["python", "-c", "1"], 7)


def test_the_walls_are_all_there() -> None:
    found = words(Sandbox(bwrap="/usr/bin/bwrap", limits=KernelLimits(tmp_bytes=4_096)))
    walls = {"--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"}
    walls |= {"--unshare-cgroup-try", "--disable-userns", "--clearenv", "--new-session", "--die-with-parent"}
    assert walls <= set(found)
    text = " ".join(found)
    assert "--cap-drop ALL" in text
    assert "--seccomp 7" in text
    assert "--size 4096 --tmpfs /tmp" in text
    assert "--remount-ro /proc --remount-ro /dev --remount-ro /" in text
    assert text.endswith("-- python -c 1")
    writable = [found[place + 1] for place, word in enumerate(found) if word in ("--bind", "--dev-bind")]
    assert writable == ["/tmp/fn-1/work", "/tmp/fn-1/wire"]


def test_root_becomes_somebody_else_first() -> None:
    text = " ".join(words(Sandbox(bwrap="/usr/bin/bwrap", limits=KernelLimits(), user=61_500)))
    assert "--reuid=61500 --regid=61500 --clear-groups --inh-caps=-all -- /usr/bin/bwrap --unshare-user" in text


def test_no_home_and_no_variable_of_the_host_is_handed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = words(Sandbox(bwrap="bwrap", limits=KernelLimits()))
    assert "sk-secret" not in " ".join(found)
    bound = {found[place + 1] for place, word in enumerate(found) if "bind" in word}
    assert not bound & {"/", "/home", "/etc", "/root", "/var", "/run", str(Path.home())}
    assert set(variables(Path("/w"), Path("/t"))) >= {"HOME", "PATH", "TMPDIR"}


def test_the_environment_is_found() -> None:
    found = python_environment()
    needed = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve()]
    system = (Path("/usr"), Path("/bin"), Path("/lib"))
    assert all(any(path.is_relative_to(top) for top in (*found, *system)) for path in needed)


def test_an_environment_that_shows_a_home_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home" / "me").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    with pytest.raises(SandboxUnavailable, match="holds the home directory"):
        python_environment()


def test_links_on_the_way_to_the_program_are_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = tmp_path / "real" / "bin"
    real.mkdir(parents=True)
    (real / "python3").write_text("", encoding="utf-8")
    (tmp_path / "alias").symlink_to("real")
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "python").symlink_to(tmp_path / "alias" / "bin" / "python3")
    monkeypatch.setattr(sys, "executable", str(venv / "python"))
    found = python_environment()
    assert {tmp_path / "real", tmp_path / "alias", tmp_path / "venv"} <= set(found)


def test_limits_must_be_positive() -> None:
    with pytest.raises(ValueError, match="memory"):
        KernelLimits(memory=0)
    with pytest.raises(ValueError, match="pieces"):
        OutputCaps(pieces=-1)
