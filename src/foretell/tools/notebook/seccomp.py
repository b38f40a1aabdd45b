"""A filter of system calls for the sandbox: calls that a notebook never needs and that reach deep into the kernel.

Written as classic BPF for the two machine types Python mostly runs on; elsewhere there is no filter, and the probe
says so. It is one more wall behind the namespaces, not the wall.
"""

import errno
import platform
import struct

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL_PROCESS, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in what the kernel shows a filter of a call (struct seccomp_data, little-endian)."""
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
}
"""Answered with "not permitted". Memory that no process maps (memfd, System V) would escape the count of memory."""
CLONE = (56, 220)
CLONE3 = (435, 435)
SOCKET = (41, 198)
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
    steps += _looked_into(CLONE[place], [(ANY_BIT, 0, 1, NEW_NAMESPACE)], errno.EPERM)
    known_ones = [(EQUAL, len(FAMILIES) - order, 0, family) for order, family in enumerate(FAMILIES)]
    steps += _looked_into(SOCKET[place], known_ones, errno.EAFNOSUPPORT)
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _refused(number: int, code: int) -> list[Step]:
    return [(EQUAL, 0, 1, number), (RETURN, 0, 0, FAIL | code)]


def _looked_into(number: int, tests: list[Step], code: int) -> list[Step]:
    """Tests of the first argument: refused where they lead to the next step, allowed where they lead one further."""
    return [
        (EQUAL, 0, len(tests) + 3, number),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        *tests,
        (RETURN, 0, 0, FAIL | code),
        (RETURN, 0, 0, ALLOW),
    ]
