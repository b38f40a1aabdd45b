"""How much a notebook may use, and how much of what it prints is kept."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, kw_only=True)
class KernelLimits:
    """What the sandbox of one notebook may use. Whoever goes beyond is told, stopped, or killed, in this order."""

    memory: int = 2 * GIB
    """Bytes of memory of all processes together; beyond it the sandbox is killed."""
    address_space: int = 4 * GIB
    """Bytes one process may map; beyond it Python raises MemoryError and lives on."""
    processes: int = 96
    """Processes and threads together. A kernel itself needs about fifteen."""
    open_files: int = 512
    """Of one process."""
    file_bytes: int = 64 * MIB
    """Of one file."""
    disk_bytes: int = 256 * MIB
    """Of all files together, deleted ones that are still open among them; beyond it the sandbox is killed."""
    disk_entries: int = 10_000
    """Files and directories in the working directory."""
    tmp_bytes: int = 64 * MIB
    """Of `/tmp`, which lies in memory and ends with the sandbox."""
    cpu_seconds: int = 900
    """Of one process over the whole life of a notebook."""
    cell_seconds: float = 60.0
    """From the start of a cell to its end by the clock; then it is interrupted."""
    grace_seconds: float = 2.0
    """How long an interrupted cell may take to end; then the sandbox is killed."""
    start_seconds: float = 60.0
    """How long a kernel may take to come up."""

    def __post_init__(self) -> None:
        _refuse_nothing(self)


@dataclass(frozen=True, kw_only=True)
class OutputCaps:
    """How much of a cell's output is kept. The kernel cuts first, and whatever it says is cut again outside."""

    text: int = 100_000
    """Characters of one piece of text, such as everything printed in a row."""
    html: int = 200_000
    """Characters of one table or other HTML."""
    image: int = 4 * MIB
    """Bytes of one image; a larger one is left out, since half an image is none."""
    pieces: int = 100
    """Outputs of one cell."""
    cell: int = 8 * MIB
    """Bytes of all outputs of one cell."""
    message: int = 12 * MIB
    """Bytes of one message on the wire: only a kernel that was tampered with sends larger ones, and it is killed."""
    flood: int = 48 * MIB
    """Bytes on the wire during one cell; a kernel that sends more is killed."""

    def __post_init__(self) -> None:
        _refuse_nothing(self)


def _refuse_nothing(limits: object) -> None:
    for name, value in vars(limits).items():
        if not value > 0:
            raise ValueError(f"the limit {name} must be positive, got {value}")
