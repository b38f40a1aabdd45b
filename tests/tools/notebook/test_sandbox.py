"""The sandbox command, the user it runs as, and errors if there is no sandbox."""

import asyncio
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from foretell.questions.errors import InputError, MissingExtra
from foretell.tools.notebook import kernel as kernel_module
from foretell.tools.notebook import sandbox, sandbox_check
from foretell.tools.notebook.kernel import Kernel
from foretell.tools.notebook.limits import KernelLimits, OutputCaps
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import new_run
from foretell.tools.notebook.sandbox import (
    SPARE_USERS,
    RunDirectory,
    Sandbox,
    SandboxUnavailable,
    becoming,
    closed_above,
    python_environment,
    spare_user,
    variables,
)
from foretell.tools.notebook.sandbox_check import check_sandbox, diagnosis, weaknesses

RUN = RunDirectory(top=Path("/tmp/fn-1"))


def words(sandbox: Sandbox) -> list[str]:
    return sandbox.command(RUN, ["python", "-c", "1"], 7)


def test_command_contains_all_sandbox_options() -> None:
    command = words(Sandbox(bwrap="/usr/bin/bwrap", limits=KernelLimits(tmp_bytes=4_096)))
    walls = {"--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"}
    walls |= {"--unshare-cgroup-try", "--disable-userns", "--clearenv", "--new-session", "--die-with-parent"}
    assert walls <= set(command)
    text = " ".join(command)
    assert "--cap-drop ALL" in text
    assert "--seccomp 7" in text
    assert "--size 4096 --tmpfs /tmp" in text
    assert "--remount-ro /proc --remount-ro /dev --remount-ro /" in text
    assert text.endswith("-- python -c 1")
    writable = [command[place + 1] for place, word in enumerate(command) if word in ("--bind", "--dev-bind")]
    assert writable == ["/tmp/fn-1/work", "/tmp/fn-1/wire"]


def test_root_switches_to_another_user_first() -> None:
    text = " ".join(words(Sandbox(bwrap="/usr/bin/bwrap", limits=KernelLimits(), user=61_500)))
    assert "--reuid=61500 --regid=61500 --clear-groups --inh-caps=-all -- /usr/bin/bwrap --unshare-user" in text


def test_home_and_environment_of_the_host_are_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    command = words(Sandbox(bwrap="bwrap", limits=KernelLimits()))
    assert "sk-secret" not in " ".join(command)
    bound = {command[place + 1] for place, word in enumerate(command) if "bind" in word}
    assert not bound & {"/", "/home", "/etc", "/root", "/var", "/run", str(Path.home())}
    assert set(variables(Path("/w"), Path("/t"))) >= {"HOME", "PATH", "TMPDIR"}


def test_python_environment_is_found() -> None:
    directories = python_environment()
    needed = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve()]
    system = (Path("/usr"), Path("/bin"), Path("/lib"))
    assert all(any(path.is_relative_to(top) for top in (*directories, *system)) for path in needed)


def test_environment_that_contains_the_home_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home" / "me").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    with pytest.raises(SandboxUnavailable, match="contains the home directory"):
        python_environment()


def test_symlinks_to_the_python_executable_are_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = tmp_path / "real" / "bin"
    real.mkdir(parents=True)
    (real / "python3").write_text("", encoding="utf-8")
    (tmp_path / "alias").symlink_to("real")
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "python").symlink_to(tmp_path / "alias" / "bin" / "python3")
    monkeypatch.setattr(sys, "executable", str(venv / "python"))
    directories = python_environment()
    assert {tmp_path / "real", tmp_path / "alias", tmp_path / "venv"} <= set(directories)


def test_limits_must_be_positive() -> None:
    with pytest.raises(ValueError, match="memory"):
        KernelLimits(memory=0)
    with pytest.raises(ValueError, match="pieces"):
        OutputCaps(pieces=-1)


def test_spare_users_are_only_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1_000)
    assert spare_user() is None
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 0)
    monkeypatch.setattr(sandbox, "_is_really_root", lambda: True)
    assert spare_user() in SPARE_USERS
    monkeypatch.setattr(sandbox, "_is_really_root", lambda: False)
    assert spare_user() is None


@pytest.mark.parametrize(
    ("users", "really"),
    [("0 0 4294967295\n", True), ("0 100000 65536\n", False), ("1000 1000 1\n0 5 1\n", False), ("0 0 1\n", True)],
)
def test_root_of_a_container_is_not_real_root(users: str, really: bool, tmp_path: Path) -> None:
    (tmp_path / "uid_map").write_text(users, encoding="utf-8")
    assert sandbox._is_really_root(tmp_path / "uid_map") is really  # pyright: ignore[reportPrivateUsage]


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


def test_nothing_is_mounted_if_no_directory_is_closed(folder: Path) -> None:
    command = becoming(61_500, [Path("/usr/lib"), folder], folder)
    assert command[0] == "setpriv"
    assert "--reuid=61500" in command


def test_spare_user_sees_only_the_needed_closed_directories(folder: Path, sandboxed: None) -> None:
    needed = folder / "closed" / "it's open" / "needed"
    needed.mkdir(parents=True)
    (needed / "file").write_text("needed", encoding="utf-8")
    (folder / "closed" / "secret").write_text("secret", encoding="utf-8")
    (folder / "stage").mkdir()
    (folder / "closed").chmod(0o700)
    command = becoming(61_500, [needed], folder / "stage")
    assert command[0] == "unshare"
    if os.geteuid() != 0:
        return  # Only root can and needs to do this.
    code = f"id -u; cat {shlex.quote(str(needed / 'file'))}; echo; ls {shlex.quote(str(folder / 'closed'))}"
    done = subprocess.run([*command, "sh", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["61500", "needed", "it's", "open"], done.stderr
    assert (folder / "closed" / "secret").read_text(encoding="utf-8") == "secret"
    assert sorted(path.name for path in (folder / "closed").iterdir()) == ["it's open", "secret"]
    assert list((folder / "stage").iterdir()) == []


@pytest.mark.parametrize(
    ("output", "settings", "problem", "hint"),
    [
        ("bwrap: Unknown option --disable-userns", {}, "older than 0.8", "newer"),
        (
            "bwrap: setting up uid map: Permission denied",
            {"sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
            "AppArmor forbids",
            "profile for bwrap",
        ),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", {}, "namespaces cannot be made", "container"),
        (
            "bwrap: No permissions to create new namespace, likely because",
            {"sys/kernel/unprivileged_userns_clone": "0"},
            "switched off",
            "kernel.unprivileged_userns_clone=1",
        ),
        (
            "bwrap: Creating new namespace failed: Operation not permitted",
            {"self/status": "Name:\tx\nSeccomp:\t2\n"},
            r"\(seccomp\) forbids namespaces",
            "seccomp=unconfined",
        ),
        (
            "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
            {"sys/user/max_user_namespaces": "0"},
            "no user namespace may be made",
            "user.max_user_namespaces",
        ),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", {}, "/proc are hidden", "systempaths"),
        ("bwrap: execvp /x/python: Permission denied", {}, "cannot be read by a user without rights", "chmod"),
        ("unshare: unshare failed: Operation not permitted", {}, "root may not mount anything", "ordinary user"),
        ("bwrap: something new", {}, "bubblewrap failed", "another machine"),
    ],
)
def test_diagnosis_explains_a_failed_trial(output: str, settings: dict[str, str], problem: str, hint: str) -> None:
    error = diagnosis(output, lambda name: settings.get(name, ""))
    assert isinstance(error, InputError)
    with pytest.raises(SandboxUnavailable, match=problem):
        raise error
    assert hint in str(error)
    assert output[:60] in str(error)


def test_missing_bubblewrap_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def opened() -> None:
        async with KernelPool():
            raise AssertionError("a pool without a sandbox")

    with pytest.raises(SandboxUnavailable, match=r"bwrap for it is not installed.*apt install bubblewrap"):
        asyncio.run(opened())


def test_failing_bubblewrap_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match="cannot be confined here"):
        asyncio.run(check_sandbox(KernelLimits()))


def test_bubblewrap_without_confinement_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n', encoding="utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match="cannot be confined here"):
        asyncio.run(check_sandbox(KernelLimits()))


def test_root_without_permission_to_change_owners_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, user: int, group: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.chown", refuse)
    with pytest.raises(SandboxUnavailable, match="cannot change the owner of a directory"):
        new_run(61_500)


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_check.sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="need Linux"):
        asyncio.run(check_sandbox(KernelLimits()))


def test_missing_seccomp_filter_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert weaknesses() == [] or "not filtered" in weaknesses()[0]
    monkeypatch.setattr(sandbox_check, "seccomp_filter", lambda: None)
    assert "system calls are not filtered" in weaknesses()[0]


def test_missing_notebook_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"foretell\[notebook\]"):
        asyncio.run(Kernel.start(None, limits=KernelLimits(), caps=OutputCaps()))


def test_pool_without_kernels_is_refused() -> None:
    with pytest.raises(InputError, match="cannot have"):
        KernelPool(most=0)
