"""Checks whether notebooks can be run in a sandbox on this machine, and what is missing if not."""

import asyncio
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from foretell.tools.notebook.limits import KernelLimits
from foretell.tools.notebook.process import SandboxedProcess, new_run
from foretell.tools.notebook.sandbox import Sandbox, SandboxUnavailable, seccomp_filter, spare_user

OLDEST = "0.8"
PATIENCE = 30.0
CONFINED = "confined"
CHECK = f"""
import os, sys
assert all(int(name) < 100 for name in os.listdir("/proc") if name.isdigit()), "the machine's processes can be seen"
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
assert int(status["CapEff"], 16) == 0, "it has capabilities"
assert int(status["NoNewPrivs"]) == 1, "it could gain privileges"
assert [line.split(":")[0].strip() for line in open("/proc/net/dev")][2:] in ([], ["lo"]), "it has a network"
open("here", "w").close()
print("{CONFINED}", file=sys.stderr)
"""
Setting = Callable[[str], str]
"""Reads a file below /proc; returns an empty string if there is none."""


def require_linux() -> None:
    """Raise `SandboxUnavailable` on another system, where notebooks can be neither confined nor watched."""
    if sys.platform != "linux":
        raise SandboxUnavailable(f"notebooks need Linux, and this is {platform.system()}")


async def check_sandbox(limits: KernelLimits) -> Sandbox:
    """Return a sandbox after a trial run, or raise `SandboxUnavailable` with what is missing and how to get it."""
    require_linux()
    sandbox = Sandbox(bwrap=_require_program("bwrap", "bubblewrap"), limits=limits, user=spare_user())
    for program in ("setpriv", "unshare", "mount") if sandbox.user is not None else ():
        _require_program(program, "util-linux")
    run = new_run(sandbox.user)
    confined = await SandboxedProcess.start(
        [sys.executable, "-I", "-B", "-c", CHECK], sandbox=sandbox, limits=limits, run=run
    )
    try:
        async with asyncio.timeout(PATIENCE):
            code = await asyncio.shield(confined.ended)
    except TimeoutError:
        code = -1
    finally:
        await confined.close()
    output = confined.stderr_text.strip()
    if code != 0 or not output.endswith(CONFINED):
        raise diagnosis(output or f"the trial ended with exit code {code}", _setting)
    return sandbox


def weaknesses() -> list[str]:
    """Return the protections that the sandbox lacks on this machine."""
    if seccomp_filter() is None:
        return [f"system calls are not filtered: their numbers are not known for {platform.machine()}"]
    return []


def diagnosis(output: str, setting: Setting) -> SandboxUnavailable:
    """Explain a failed trial from bubblewrap's error output and the settings of the machine."""
    problem, hint = "bubblewrap failed", "run them on another machine"
    readable = f"{sys.prefix} {sys.base_prefix}"
    for words, meaning in (
        (("nknown option",), (f"bubblewrap is older than {OLDEST}", "install a newer one")),
        ((*USER_MAP, *NO_NAMESPACE), _no_namespace(output, setting)),
        (("mount proc",), ("parts of /proc are hidden, as in a container", f"docker run {SHOW_PROC}")),
        (
            ("unshare: ", "mount: "),
            (
                "root may not mount anything, so a spare user cannot be shown the Python environment",
                f"put {readable} where all users can read them, or run as an ordinary user",
            ),
        ),
        (
            ("execvp", "source path"),
            (
                f"the Python environment {sys.prefix} cannot be read by a user without rights",
                f"chmod -R o+rX {readable}",
            ),
        ),
    ):
        if any(word in output for word in words):
            problem, hint = meaning
            break
    last = output.splitlines()[-1][:300]
    return SandboxUnavailable(f"notebooks cannot be confined here: {problem} [{last}]", hint=hint)


USER_MAP = ("uid map", "RTM_NEWADDR", "gid map")
NO_NAMESPACE = ("No permissions to creat", "Creating new namespace failed", "ENOSPC")
SHOW_PROC = "--security-opt systempaths=unconfined"


def _no_namespace(output: str, setting: Setting) -> tuple[str, str]:
    apparmor = "kernel.apparmor_restrict_unprivileged_userns"
    if setting(f"sys/{apparmor.replace('.', '/')}") == "1" and any(word in output for word in USER_MAP):
        return "AppArmor forbids user namespaces", f"install an AppArmor profile for bwrap, or sysctl {apparmor}=0"
    if setting("sys/kernel/unprivileged_userns_clone") == "0":
        return "user namespaces are switched off", "sysctl kernel.unprivileged_userns_clone=1"
    if setting("sys/user/max_user_namespaces") == "0":
        return "no user namespace may be made", "sysctl user.max_user_namespaces=10000"
    if "Seccomp:\t2" in setting("self/status"):
        problem = "a filter of system calls (seccomp) forbids namespaces, as in a container"
        return problem, f"docker run --security-opt seccomp=unconfined {SHOW_PROC}"
    return "namespaces cannot be made", "give the process the right to, or run it outside of the container"


def _require_program(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SandboxUnavailable(
            f"notebooks are run in a sandbox, and the program {program} for it is not installed",
            hint=f"apt install {package}",
        )
    return path


def _setting(name: str) -> str:
    try:
        return (Path("/proc") / name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
