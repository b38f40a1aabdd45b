"""Builds the command line that runs a program in its own sandbox, with bubblewrap.

Inside there is no network, no other process, no capability, none of our environment variables, and no files except the
system's programs and the Python environment (both read-only), a small `/tmp`, and the notebook's own directories.
"""

import errno
import os
import platform
import shlex
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import SystemRandom

from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.tools.notebook.limits import KernelLimits

# Switching from root to an ordinary user before entering a sandbox.
#
# A process of root keeps many rights even without any capability: it may write the settings in `/proc/sys`, and limits
# on the number of processes do not apply to it. A spare user has no such rights. Directories closed to others, such as
# Python itself below `/root`, are mounted where the spare user can reach them, in a mount namespace of this process.

SPARE_USERS = range(61_184, 65_520)
"""User ids that systemd reserves for users that exist only while a service runs."""
PASSABLE = 0o001


def spare_user() -> int | None:
    """Return a user id for root to switch to, different for every sandbox.

    Returns None for other users: they cannot change identity, and need not.
    """
    return SystemRandom().choice(SPARE_USERS) if os.geteuid() == 0 and _is_really_root() else None


def _is_really_root(users: Path = Path("/proc/self/uid_map")) -> bool:
    """Whether root is root of the machine, rather than an ordinary user mapped to root in a container."""
    for line in users.read_text(encoding="utf-8").splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= 0 < inside + count:
            return outside - inside == 0
    return True


def closed_above(path: Path) -> Path | None:
    """Return the outermost parent directory of a path that other users cannot traverse, or None."""
    return next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & PASSABLE), None)


def becoming(user: int, needed: Iterable[Path], stage: Path) -> list[str]:
    """Return the start of a command that runs as the given user and needs these directories.

    They appear at their own paths; `stage` is an empty directory used to set that up. No process is left in between, so
    the caller can kill the resulting process, and the kernel kills it when the caller dies.
    """
    closed = {path: above for path in needed if (above := closed_above(path)) is not None}
    identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all", "--"]
    if not closed:
        return identity
    # Bind the directories elsewhere, cover the closed parents with empty ones, and bind the directories back.
    aside = {path: f"{shlex.quote(str(stage))}/{number}" for number, path in enumerate(closed)}
    lines = ["set -e", "umask 022", f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(stage))}"]
    lines += [f"mkdir {place}; mount --bind {shlex.quote(str(path))} {place}" for path, place in aside.items()]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(above))}" for above in dict.fromkeys(closed.values())]
    for path, place in aside.items():
        lines.append(f"mkdir -p {shlex.quote(str(path))}; mount --move {place} {shlex.quote(str(path))}")
    script = "\n".join([*lines, 'exec "$@"'])
    return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script, "sh", *identity]


WORK, SOCKET_DIR, API = Path("/notebook"), Path("/wire"), Path("/api")
"""Where the directories of a `RunDirectory` are mounted inside the sandbox."""
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
"""All environment variables inside, besides those that name directories."""


class SandboxUnavailable(InputError):
    """Notebooks cannot be run safely here. The message names what is missing and how to install it."""


class RunDirectory:
    """The directories of one sandbox, by their paths on the host."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.work = top / "work"
        """The notebook's own directory, the only place where its files outlive a process."""
        self.sockets = top / "wire"
        """The directory of the kernel's sockets."""
        self.api = top / "api"
        """The directory of the data proxy's socket; the sandbox can read but not write it."""
        self.tmp = top / "tmp"
        """The directory for temporary files without a sandbox; a sandbox has its own `/tmp`."""
        self.fonts = top / "fonts.json"
        """A copy of the font list, because the original may be in a directory that only its owner can access."""

    def make(self, user: int | None) -> None:
        """Create the directories, accessible only to the current user or to the given user."""
        for directory in (self.work, self.sockets, self.api, self.tmp):
            directory.mkdir(mode=0o700)
            if user is not None:
                os.chown(directory, user, user)
        if user is not None:
            self.top.chmod(0o711)


def variables(work: Path, tmp: Path) -> dict[str, str]:
    """Return the complete environment of a kernel. It contains nothing from the host's environment."""
    return {
        **VARIABLES,
        "HOME": str(work),
        "TMPDIR": str(tmp),
        "IPYTHONDIR": str(tmp / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "XDG_CACHE_HOME": str(tmp / "cache"),
        "MPLCONFIGDIR": str(tmp / FONTS.name),
    }


@frozen
class Sandbox:
    """How programs are confined on this machine."""

    bwrap: str
    limits: KernelLimits
    user: int | None = None
    """The user id that root switches to first; None if we are an ordinary user already."""
    fonts: Path | None = None
    """Path of matplotlib's font list, which takes seconds to build."""

    def command(self, run: RunDirectory, program: Sequence[str], seccomp_fd: int | None = None) -> list[str]:
        """Return the command line that runs a program inside the sandbox."""
        environment = python_environment()
        fonts = [] if self.fonts is None else [(run.fonts, FONTS / self.fonts.name)]
        inner = [
            self.bwrap,
            *ISOLATION,
            *_system(),
            # Shared mappings of /dev/zero would evade the memory count.
            *("--proc", "/proc", "--dev", "/dev", "--ro-bind", "/dev/null", "/dev/zero"),
            *("--size", str(self.limits.tmp_bytes), "--tmpfs", "/tmp"),
            *("--size", str(self.limits.tmp_bytes), "--tmpfs", "/dev/shm"),
            *_passable(environment),  # After /tmp, which may contain the environment.
            *_bound("--ro-bind", *((path, path) for path in environment)),
            *_bound("--bind", (run.work, WORK), (run.sockets, SOCKET_DIR)),
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
    """Return the outermost directories this Python needs to run.

    Raises `SandboxUnavailable` if they would expose the home directory.
    """
    paths = {Path(prefix) for prefix in (sys.base_prefix, sys.prefix, sys.base_exec_prefix, sys.exec_prefix)}
    paths |= set(package_directories())
    paths |= {hop.parent.parent for hop in _hops(Path(sys.executable)) if hop.parent.name == "bin"}
    real = {path.resolve() for path in paths} | {path.absolute() for path in paths}
    needed = [path for path in real if path.is_dir() and not _within(path, map(Path, SYSTEM))]
    for path in needed:
        if Path.home().is_relative_to(path):
            raise SandboxUnavailable(
                f"the Python environment {path} contains the home directory, which a notebook must not see",
                hint="use a virtual environment",
            )
    return tuple(sorted(path for path in needed if not _within(path, (other for other in needed if other != path))))


def package_directories() -> list[Path]:
    """Return the directories in which this Python finds installed packages."""
    return [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]


def _hops(executable: Path) -> list[Path]:
    """Return a program's path and every symlink target on the way to the file itself."""
    hops = [executable.absolute()]
    while hops[-1].is_symlink() and len(hops) < 20:
        hops.append(Path(os.path.normpath(hops[-1].parent / hops[-1].readlink())))
    return hops


def _within(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in others)


def _system() -> list[str]:
    """Return the options that mount the system's programs and libraries; symlinks stay symlinks."""
    words: list[str] = []
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            words += ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            words += ("--ro-bind", str(path), str(path))
    settings = [Path(path) for path in SETTINGS]
    return [*words, *_passable(settings), *_bound("--ro-bind-try", *((path, path) for path in settings))]


def _passable(paths: Iterable[Path]) -> list[str]:
    """Return options that create the parents of paths so that all users can traverse them.

    Those that bubblewrap creates by itself are accessible to their owner alone.
    """
    parents = dict.fromkeys(parent for path in paths for parent in reversed(path.parents[:-1]))
    return [word for parent in parents for word in ("--dir", str(parent))]


def _bound(how: str, *paths: tuple[Path, Path]) -> list[str]:
    return [word for source, place in paths for word in (how, str(source), str(place))]


LOAD, AND, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL_PROCESS, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in the call data that the kernel passes to a filter (struct seccomp_data, little-endian)."""
ARGUMENT_BYTES = 8
NEW_NAMESPACE = 0x7E020000
"""All CLONE_NEW… flags of clone: user, network, pid, ipc, uts, mount, cgroup."""
FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink sockets, which a kernel uses internally and which cannot leave the sandbox.

Other families, such as sockets between a virtual machine and its host, can.
"""
OTHER_ABI = 0x40000000
"""From this number on, x86-64 uses the x32 numbering of system calls, which would bypass the filter."""

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
"""Calls that fail with EPERM. Memory that no process maps (memfd, System V) would evade the memory count."""
CLONE = (56, 220)
CLONE3 = (435, 435)
SOCKET = (41, 198)
MMAP = (9, 222)
SHARED_ANONYMOUS = 0x21
"""Flags of a shared anonymous mapping, whose pages outlive the process that touched them and evade the memory count."""
THREAD, FILES = 0x10000, 0x400
"""Flags of clone. A thread that does not share its process's files would evade the count of files."""
SETSOCKOPT = (54, 208)
BUFFER_SIZES = (7, 8)
"""Socket options (level 1) that are accepted but ignored, so that the default bound on a socket's buffers holds."""
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

Step = tuple[int, int, int, int]
"""A filter instruction: code, jump offset if true, jump offset if false, operand."""


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """Return the seccomp filter in bubblewrap's format, or None if the system call numbers are not known."""
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
    # The flags of clone3 are in memory, which a filter cannot read. Without it the C library falls back to clone.
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
    """Return steps that refuse a call, or only calls whose arguments (by position) match the bits under a mask."""
    looks = [
        [(LOAD, 0, 0, FIRST_ARGUMENT + ARGUMENT_BYTES * place), (AND, 0, 0, mask), (EQUAL, 0, 3 * after + 1, bits)]
        for after, (place, mask, bits) in zip(range(len(where) - 1, -1, -1), where, strict=True)
    ]
    steps = [*(step for look in looks for step in look), (RETURN, 0, 0, FAIL | code)]
    # The following steps read the number again.
    return [(EQUAL, 0, len(steps), number), *steps, *([(LOAD, 0, 0, NUMBER)] if where else [])]


def _looked_into(number: int, tests: list[Step], code: int) -> list[Step]:
    """Return steps that test a call's first argument: a test jumps to the next step to refuse, one further to allow."""
    return [
        (EQUAL, 0, len(tests) + 3, number),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        *tests,
        (RETURN, 0, 0, FAIL | code),
        (RETURN, 0, 0, ALLOW),
    ]
