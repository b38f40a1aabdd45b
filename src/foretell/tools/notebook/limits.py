"""Resource limits of a notebook, and caps on how much of its output is kept."""

from foretell.frozen import frozen

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@frozen
class KernelLimits:
    """Resource limits of one notebook's sandbox. Exceeding one raises an error, interrupts or kills, in this order."""

    memory: int = 2 * GIB
    """Bytes of memory of all processes together; beyond this the sandbox is killed."""
    address_space: int = 4 * GIB
    """Bytes one process may map; beyond this Python raises MemoryError and keeps running."""
    processes: int = 96
    """Maximum number of processes and threads together. The kernel itself needs about fifteen."""
    open_files: int = 512
    """Maximum number of open files per process."""
    file_bytes: int = 64 * MIB
    """Maximum size of one file, in bytes."""
    disk_bytes: int = 256 * MIB
    """Bytes of all files together, including deleted ones that are still open; beyond this the sandbox is killed."""
    disk_entries: int = 10_000
    """Maximum number of files and directories in the working directory."""
    tmp_bytes: int = 64 * MIB
    """Size of `/tmp` in bytes; it is kept in memory and disappears with the sandbox."""
    cpu_seconds: int = 900
    """CPU seconds of one process over the whole life of a notebook."""
    trial_seconds: float = 60.0
    """Wall-clock seconds a cell may run before it is interrupted."""
    grace_seconds: float = 2.0
    """Seconds an interrupted cell has to end before the sandbox is killed."""
    start_seconds: float = 60.0
    """Seconds a kernel may take to start."""

    def __post_init__(self) -> None:
        _refuse_nothing(self)


@frozen
class OutputCaps:
    """How much of a cell's output is kept. The kernel cuts first; its output is cut again outside."""

    text: int = 100_000
    """Characters of one piece of text, such as consecutive printed output."""
    html: int = 200_000
    """Characters of one table or other piece of HTML."""
    image: int = 4 * MIB
    """Bytes of one image; a larger one is left out, because part of an image is useless."""
    pieces: int = 100
    """Maximum number of outputs of one cell."""
    cell: int = 8 * MIB
    """Bytes of all outputs of one cell."""
    message: int = 12 * MIB
    """Bytes of one message; only a kernel that was tampered with sends more, and it is killed."""
    flood: int = 48 * MIB
    """Bytes received from a kernel during one cell; a kernel that sends more is killed."""

    def __post_init__(self) -> None:
        _refuse_nothing(self)


def _refuse_nothing(limits: object) -> None:
    for name, value in vars(limits).items():
        if not value > 0:
            raise ValueError(f"the limit {name} must be positive, got {value}")
