"""How root becomes an ordinary user before it enters a sandbox.

A process of root keeps root's rights over much of the machine even without any capability: it may write the settings in
`/proc/sys`, and limits on the number of processes do not concern it. A spare user has no such rights. What lies in
directories closed to others, such as Python itself below `/root`, is put where the spare user can reach it, in a view
of the file system that only this process has.
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from random import SystemRandom

SPARE_USERS = range(61_184, 65_520)
"""Ids that systemd keeps for users who exist only while a service runs."""
PASSABLE = 0o001


def spare_user() -> int | None:
    """For root somebody to become, different for every sandbox; nobody else can change identity, or needs to."""
    return SystemRandom().choice(SPARE_USERS) if os.geteuid() == 0 and _is_really_root() else None


def _is_really_root(users: Path = Path("/proc/self/uid_map")) -> bool:
    """Whether root is root of the machine, and not an ordinary user whom a container calls so."""
    for line in users.read_text(encoding="utf-8").splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= 0 < inside + count:
            return outside - inside == 0
    return True


def closed_above(path: Path) -> Path | None:
    """The outermost directory on the way to a path that others may not pass."""
    return next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & PASSABLE), None)


def becoming(user: int, needed: Iterable[Path], stage: Path) -> list[str]:
    """The beginning of a command that is to run as that user and needs these directories.

    They are shown at their own places; `stage` is an empty directory to do so. No process is left in between: whoever
    started this can kill what becomes of it, and the kernel does so when he dies.
    """
    closed = {path: above for path in needed if (above := closed_above(path)) is not None}
    identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all", "--"]
    if not closed:
        return identity
    return [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--",
        "sh",
        "-c",
        _showing(closed, stage),
        "sh",
        *identity,
    ]


def _showing(closed: dict[Path, Path], stage: Path) -> str:
    """Set the directories aside, cover what is closed with something empty and open, and put them back."""
    aside = {path: f"{shlex.quote(str(stage))}/{number}" for number, path in enumerate(closed)}
    lines = ["set -e", "umask 022", f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(stage))}"]
    lines += [f"mkdir {place}; mount --bind {shlex.quote(str(path))} {place}" for path, place in aside.items()]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(above))}" for above in dict.fromkeys(closed.values())]
    for path, place in aside.items():
        lines.append(f"mkdir -p {shlex.quote(str(path))}; mount --move {place} {shlex.quote(str(path))}")
    return "\n".join([*lines, 'exec "$@"'])
