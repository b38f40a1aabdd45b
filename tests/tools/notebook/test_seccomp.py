"""The seccomp filter, run in a small interpreter of its instructions."""

import errno
import struct

import pytest

from foretell.tools.notebook.sandbox import (
    ALLOW,
    AND,
    ANY_BIT,
    ARCHITECTURES,
    AT_LEAST,
    CLONE,
    CLONE3,
    DENIED,
    EQUAL,
    FAIL,
    KILL_PROCESS,
    LOAD,
    MMAP,
    RETURN,
    SETSOCKOPT,
    SOCKET,
    seccomp_filter,
)

MACHINES = list(ARCHITECTURES)
TESTS = {EQUAL: lambda a, k: a == k, AT_LEAST: lambda a, k: a >= k, ANY_BIT: lambda a, k: bool(a & k)}


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Return the filter's verdict on a call."""
    program = seccomp_filter(machine)
    assert program is not None
    known = ARCHITECTURES[machine][1] if architecture is None else architecture
    data = struct.pack("<IIQ6Q", number, known, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps = [struct.unpack_from("<HBBI", program, place) for place in range(0, len(program), 8)]
    assert len(steps) < 4_096
    place = accumulator = 0
    while True:
        code, true, false, operand = steps[place]
        place += 1
        if code == RETURN:
            return operand
        if code == LOAD:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == AND:
            accumulator &= operand
        else:
            place += true if TESTS[code](accumulator, operand) else false


@pytest.mark.parametrize("machine", MACHINES)
def test_dangerous_system_calls_are_denied(machine: str) -> None:
    place = ARCHITECTURES[machine][0]
    for numbers in DENIED.values():
        assert verdict(machine, numbers[place]) == FAIL | errno.EPERM
    assert len({numbers[place] for numbers in DENIED.values()}) == len(DENIED)
    assert verdict(machine, CLONE3[place]) == FAIL | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_allows_processes_but_not_namespaces(machine: str) -> None:
    number = CLONE[ARCHITECTURES[machine][0]]
    threads, fork = 0x003D0F00, 0x01200011
    assert verdict(machine, number, threads) == ALLOW
    assert verdict(machine, number, fork) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, number, fork | flag) == FAIL | errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_only_local_socket_families_are_allowed(machine: str) -> None:
    number = SOCKET[ARCHITECTURES[machine][0]]
    allowed = {family for family in range(60) if verdict(machine, number, family) == ALLOW}
    assert allowed == {1, 2, 10, 16}
    assert verdict(machine, number, 40) == FAIL | errno.EAFNOSUPPORT


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_evade_memory_and_file_counts_are_denied(machine: str) -> None:
    place = ARCHITECTURES[machine][0]
    shared, private, anonymous, validated = 0x01, 0x02, 0x20, 0x03
    for flags in (shared | anonymous, validated | anonymous | 0x4000):
        assert verdict(machine, MMAP[place], 0, 4096, 3, flags) == FAIL | errno.EPERM
    for flags in (private | anonymous, shared, private, private | anonymous | 0x20000):
        assert verdict(machine, MMAP[place], 0, 4096, 3, flags) == ALLOW
    assert verdict(machine, CLONE[place], 0x10F00 & ~0x400) == FAIL | errno.EPERM
    for option in range(40):
        assert verdict(machine, SETSOCKOPT[place], 3, 1, option) == (FAIL if option in (7, 8) else ALLOW)
        assert verdict(machine, SETSOCKOPT[place], 3, 6, option) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_other_calls_are_allowed_except_in_other_numberings(machine: str) -> None:
    place = ARCHITECTURES[machine][0]
    special = {numbers[place] for numbers in (*DENIED.values(), CLONE3, SOCKET)}
    for number in set(range(460)) - special:
        assert verdict(machine, number, 0x11) == ALLOW
    assert verdict(machine, 0x40000000 + 1) == FAIL | errno.ENOSYS
    assert verdict(machine, 1, architecture=0x40000003) == KILL_PROCESS


def test_unknown_machines_have_no_filter() -> None:
    assert seccomp_filter("riscv64") is None
