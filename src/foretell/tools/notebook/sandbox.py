"""The command line that puts a program into a sandbox of its own, with bubblewrap.

Inside there is no network, no other process, no capability, no variable of ours and no file but the system's programs
and the Python environment (both read-only), a small `/tmp`, and the notebook's own directories.
"""

import errno
import os
import platform
import shlex
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from foretell.questions.errors import InputError
from foretell.tools.notebook.limits import KernelLimits

# How root becomes an ordinary user before it enters a sandbox.
#
# A process of root keeps root's rights over much of the machine even without any capability: it may write the settings
# in `/proc/sys`, and limits on the number of processes do not concern it. A spare user has no such rights. What lies in
# directories closed to others, such as Python itself below `/root`, is put where the spare user can reach it, in a view
# of the file system that only this process has.

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
    # Set the directories aside, cover what is closed with something empty and open, and put them back.
    aside = {path: f"{shlex.quote(str(stage))}/{number}" for number, path in enumerate(closed)}
    lines = ["set -e", "umask 022", f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(stage))}"]
    lines += [f"mkdir {place}; mount --bind {shlex.quote(str(path))} {place}" for path, place in aside.items()]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(above))}" for above in dict.fromkeys(closed.values())]
    for path, place in aside.items():
        lines.append(f"mkdir -p {shlex.quote(str(path))}; mount --move {place} {shlex.quote(str(path))}")
    script = "\n".join([*lines, 'exec "$@"'])
    return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script, "sh", *identity]


WORK, WIRE, API = Path("/notebook"), Path("/wire"), Path("/api")
"""Where the directories of a `RunDirectory` are seen inside."""
FONTS = Path("/tmp/matplotlib")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store")
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
ISOLATION = (
    *("--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--disable-userns", "--cap-drop", "ALL", "--clearenv", "--new-session", "--die-with-parent"),
    *("--hostname", "notebook"),
)
VARIABLES = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PATH": "/usr/bin:/bin",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
"""All variables there are, besides those that name directories."""


class SandboxUnavailable(InputError):
    """Notebooks cannot be run safely here; the text says what is missing and how to get it."""


class RunDirectory:
    """The directories of one sandbox, as the host sees them."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.work = top / "work"
        """The notebook's own directory, the only place where its files outlive a process."""
        self.wire = top / "wire"
        """Where the kernel puts its sockets."""
        self.api = top / "api"
        """Where the data proxy puts its socket; the sandbox can look but not write."""
        self.tmp = top / "tmp"
        """For temporary files where there is no sandbox; a sandbox has its own place for them."""
        self.fonts = top / "fonts.json"
        """A copy of the list of fonts: the original may lie where only its owner can go."""

    def make(self, user: int | None) -> None:
        """Create them, for nobody but us, or for another user but nobody else."""
        for directory in (self.work, self.wire, self.api, self.tmp):
            directory.mkdir(mode=0o700)
            if user is not None:
                os.chown(directory, user, user)
        if user is not None:
            self.top.chmod(0o711)


def variables(work: Path, tmp: Path) -> dict[str, str]:
    """The whole environment of a kernel. Nothing of the host's environment is in it."""
    return {
        **VARIABLES,
        "HOME": str(work),
        "TMPDIR": str(tmp),
        "IPYTHONDIR": str(tmp / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "XDG_CACHE_HOME": str(tmp / "cache"),
        "MPLCONFIGDIR": str(tmp / FONTS.name),
    }


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """How programs are confined on this machine."""

    bwrap: str
    limits: KernelLimits
    user: int | None = None
    """Whom root becomes first; None where we are an ordinary user already."""
    fonts: Path | None = None
    """Matplotlib's list of fonts, which takes seconds to make."""

    def command(self, run: RunDirectory, program: Sequence[str], seccomp_fd: int | None = None) -> list[str]:
        """The arguments that run a program inside."""
        environment = python_environment()
        fonts = [] if self.fonts is None else [(run.fonts, FONTS / self.fonts.name)]
        inner = [
            self.bwrap,
            *ISOLATION,
            *_system(),
            # Shared maps of /dev/zero are memory that nobody counts.
            *("--proc", "/proc", "--dev", "/dev", "--ro-bind", "/dev/null", "/dev/zero"),
            *("--size", str(self.limits.tmp_bytes), "--tmpfs", "/tmp"),
            *("--size", str(self.limits.tmp_bytes), "--tmpfs", "/dev/shm"),
            *_passable(environment),  # after /tmp, where an environment may lie
            *_bound("--ro-bind", *((path, path) for path in environment)),
            *_bound("--bind", (run.work, WORK), (run.wire, WIRE)),
            *_bound("--ro-bind", (run.api, API)),
            *(("--dir", str(FONTS)) if fonts else ()),
            *_bound("--ro-bind-try", *fonts),
            *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", str(WORK)),
            *(word for pair in variables(WORK, Path("/tmp")).items() for word in ("--setenv", *pair)),
            *(("--seccomp", str(seccomp_fd)) if seccomp_fd is not None else ()),
            "--",
            *program,
        ]
        return inner if self.user is None else [*becoming(self.user, environment, run.tmp), *inner]


def python_environment() -> tuple[Path, ...]:
    """The directories this Python needs to run, outermost only. Refused where they would show somebody's home."""
    found = {Path(prefix) for prefix in (sys.base_prefix, sys.prefix, sys.base_exec_prefix, sys.exec_prefix)}
    found |= set(package_directories())
    found |= {hop.parent.parent for hop in _hops(Path(sys.executable)) if hop.parent.name == "bin"}
    real = {path.resolve() for path in found} | {path.absolute() for path in found}
    needed = [path for path in real if path.is_dir() and not _within(path, map(Path, SYSTEM))]
    for path in needed:
        if Path.home().is_relative_to(path):
            raise SandboxUnavailable(
                f"the Python environment {path} holds the home directory, which a notebook must not see",
                hint="use a virtual environment",
            )
    return tuple(sorted(path for path in needed if not _within(path, (other for other in needed if other != path))))


def package_directories() -> list[Path]:
    """Where this Python finds installed packages."""
    return [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]


def _hops(executable: Path) -> list[Path]:
    """A program and every link on the way to the file itself."""
    hops = [executable.absolute()]
    while hops[-1].is_symlink() and len(hops) < 20:
        hops.append(Path(os.path.normpath(hops[-1].parent / hops[-1].readlink())))
    return hops


def _within(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in others)


def _system() -> list[str]:
    """The system's programs and libraries; links stay links."""
    words: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            words += ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            words += ("--ro-bind", str(path), str(path))
    settings = [Path(path) for path in SETTINGS]
    return [*words, *_passable(settings), *_bound("--ro-bind-try", *((path, path) for path in settings))]


def _passable(paths: Iterable[Path]) -> list[str]:
    """Parents of the paths that anybody may pass: those bubblewrap makes by itself are for their owner alone."""
    parents = dict.fromkeys(parent for path in paths for parent in reversed(path.parents[:-1]))
    return [word for parent in parents for word in ("--dir", str(parent))]


def _bound(how: str, *paths: tuple[Path, Path]) -> list[str]:
    return [word for source, place in paths for word in (how, str(source), str(place))]


LOAD, AND, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL_PROCESS, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in what the kernel shows a filter of a call (struct seccomp_data, little-endian)."""
ARGUMENT_BYTES = 8
NEW_NAMESPACE = 0x7E020000
"""Every CLONE_NEW… flag of clone: user, network, pid, ipc, uts, mount, cgroup."""
FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink sockets, which a kernel uses within itself and which end at the edge of the sandbox.

Others, such as those between a virtual machine and its host, know no such edge.
"""
OTHER_ABI = 0x40000000
"""From here on x86-64 takes calls in the numbering of x32, which would walk around the filter."""

DENIED = {
    # name: (x86_64, aarch64)
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_setup": (206, 0),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
"""Answered with "not permitted". Memory that no process maps (memfd, System V) would escape the count of memory."""
CLONE = (56, 220)
CLONE3 = (435, 435)
SOCKET = (41, 198)
MMAP = (9, 222)
SHARED_ANONYMOUS = 0x21
"""Flags of a map without a file whose pages stay when whoever touched them is gone: they escape the count of memory."""
THREAD, FILES = 0x10000, 0x400
"""Flags of clone. A thread whose files are not those of its process would escape the count of files."""
SETSOCKOPT = (54, 208)
BUFFER_SIZES = (7, 8)
"""Options of sockets (of level 1) that are taken and do nothing: what a socket may hold is counted as usual."""
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

Step = tuple[int, int, int, int]
"""Code, how far to jump if true, if false, and the operand."""


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """The filter as bubblewrap reads it, or None where the numbers of system calls are not known."""
    known = ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    place, architecture = known
    steps: list[Step] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, OTHER_ABI),
        (RETURN, 0, 0, FAIL | errno.ENOSYS),
    ]
    for numbers in DENIED.values():
        steps += _refused(numbers[place], errno.EPERM)
    # The flags of clone3 lie in memory, where no filter can look; without it the C library falls back to clone.
    steps += _refused(CLONE3[place], errno.ENOSYS)
    steps += _refused(MMAP[place], errno.EPERM, (3, SHARED_ANONYMOUS, SHARED_ANONYMOUS))
    steps += _refused(CLONE[place], errno.EPERM, (0, THREAD | FILES, THREAD))
    for option in BUFFER_SIZES:
        steps += _refused(SETSOCKOPT[place], 0, (1, 0xFFFFFFFF, 1), (2, 0xFFFFFFFF, option))
    steps += _looked_into(CLONE[place], [(ANY_BIT, 0, 1, NEW_NAMESPACE)], errno.EPERM)
    known_ones = [(EQUAL, len(FAMILIES) - order, 0, family) for order, family in enumerate(FAMILIES)]
    steps += _looked_into(SOCKET[place], known_ones, errno.EAFNOSUPPORT)
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _refused(number: int, code: int, *where: tuple[int, int, int]) -> list[Step]:
    """Of a call, or of those of it where arguments (by their place) have these bits of a mask."""
    looks = [
        [(LOAD, 0, 0, FIRST_ARGUMENT + ARGUMENT_BYTES * place), (AND, 0, 0, mask), (EQUAL, 0, 3 * after + 1, bits)]
        for after, (place, mask, bits) in zip(range(len(where) - 1, -1, -1), where, strict=True)
    ]
    steps = [*(step for look in looks for step in look), (RETURN, 0, 0, FAIL | code)]
    # What follows looks at the number again.
    return [(EQUAL, 0, len(steps), number), *steps, *([(LOAD, 0, 0, NUMBER)] if where else [])]


def _looked_into(number: int, tests: list[Step], code: int) -> list[Step]:
    """Tests of the first argument: refused where they lead to the next step, allowed where they lead one further."""
    return [
        (EQUAL, 0, len(tests) + 3, number),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        *tests,
        (RETURN, 0, 0, FAIL | code),
        (RETURN, 0, 0, ALLOW),
    ]
