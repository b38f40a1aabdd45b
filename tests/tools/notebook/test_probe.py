"""Without a sandbox nothing runs, and it is said exactly what is missing."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from foretell.questions.errors import InputError, MissingExtra
from foretell.tools.notebook import kernel as kernel_module
from foretell.tools.notebook import sandbox_check as module
from foretell.tools.notebook.kernel import Kernel
from foretell.tools.notebook.limits import KernelLimits, OutputCaps
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import new_run
from foretell.tools.notebook.sandbox import SandboxUnavailable
from foretell.tools.notebook.sandbox_check import check_sandbox, diagnosis, weaknesses


@pytest.mark.parametrize(
    ("said", "settings", "problem", "hint"),
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
def test_what_a_failed_trial_means(said: str, settings: dict[str, str], problem: str, hint: str) -> None:
    found = diagnosis(said, lambda name: settings.get(name, ""))
    assert isinstance(found, InputError)
    with pytest.raises(SandboxUnavailable, match=problem):
        raise found
    assert hint in str(found)
    assert said[:60] in str(found)


def test_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def opened() -> None:
        async with KernelPool():
            raise AssertionError("a pool without a sandbox")

    with pytest.raises(SandboxUnavailable, match=r"bwrap for it is not installed.*apt install bubblewrap"):
        asyncio.run(opened())


def test_a_bubblewrap_that_fails_is_asked_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match="cannot be confined here"):
        asyncio.run(check_sandbox(KernelLimits()))


def test_a_bubblewrap_that_confines_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n', encoding="utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match="cannot be confined here"):
        asyncio.run(check_sandbox(KernelLimits()))


def test_root_who_cannot_be_anybody_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, user: int, group: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.chown", refuse)
    with pytest.raises(SandboxUnavailable, match="cannot give a directory to another user"):
        new_run(61_500)


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="need Linux"):
        asyncio.run(check_sandbox(KernelLimits()))


def test_a_missing_filter_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert weaknesses() == [] or "not filtered" in weaknesses()[0]
    monkeypatch.setattr(module, "seccomp_filter", lambda: None)
    assert "system calls are not filtered" in weaknesses()[0]


def test_the_extra_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"foretell\[notebook\]"):
        asyncio.run(Kernel.start(None, limits=KernelLimits(), caps=OutputCaps()))


def test_a_pool_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="is none"):
        KernelPool(most=0)
