"""A real Jupyter kernel in a sandbox: it runs cells, can be interrupted, and reports why it died."""

import asyncio
import itertools
import json
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.questions.errors import MissingExtra
from foretell.tools.notebook.limits import KernelLimits, OutputCaps
from foretell.tools.notebook.notebook import Output, output_of
from foretell.tools.notebook.process import SandboxedProcess, kernel_program, new_run
from foretell.tools.notebook.protocol import (
    JupyterMessage,
    PeerAbsent,
    PeerHungUp,
    SocketKind,
    ZmtpBroken,
    ZmtpConnection,
    jupyter_request,
    read_message,
)
from foretell.tools.notebook.sandbox import SOCKET_DIR, Sandbox, SandboxUnavailable

# The state and result of the cell being run.

Channel = Literal["shell", "iopub", "control"]
ExecutionEnding = Literal["done", "failed", "interrupted", "dead"]


@frozen
class ExecutionEnd:
    """The final event of a cell's execution."""

    how: ExecutionEnding
    """done; failed: raised an exception; interrupted: ran out of time, variables kept; dead: all state is lost."""
    reason: str = ""
    """Why it ended, unless the cell raised an exception."""
    count: int | None = None
    """The execution count that the kernel assigned."""


class Execution:
    """The progress of one execution."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self.seconds = seconds
        self.deadline = now() + seconds
        self.interrupted = False
        self.idle = False
        self.reply: JupyterMessage | None = None

    @property
    def over(self) -> bool:
        """Whether all messages of the execution have arrived."""
        return self.idle and self.reply is not None

    def hear(self, channel: Channel, message: JupyterMessage) -> None:
        """Record a message that belongs to this execution."""
        if channel == "shell" and message.kind == "execute_reply":
            self.reply = message
        elif channel == "iopub" and message.kind == "status":
            self.idle = self.idle or message.text("execution_state") == "idle"

    def ended(self, death: str | None) -> ExecutionEnd:
        """Return how the execution ended; `death` is why the kernel died, or None if it did not."""
        if death is not None or self.reply is None:
            return ExecutionEnd(how="dead", reason=death or "")
        number = self.reply.content.get("execution_count")
        count = number if isinstance(number, int) and 0 <= number < 1_000_000 else None
        if self.interrupted:
            return ExecutionEnd(how="interrupted", reason=f"it ran for more than {self.seconds:g} s", count=count)
        return ExecutionEnd(how="done" if self.reply.text("status") == "ok" else "failed", count=count)


def now() -> float:
    """Return the event loop's time, in seconds."""
    return asyncio.get_running_loop().time()


PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "hb": 4, "control": 5}
SOCKETS: tuple[tuple[Channel, SocketKind], ...] = (("shell", "DEALER"), ("control", "DEALER"), ("iopub", "SUB"))
HEARD: tuple[Channel, ...] = ("shell", "iopub")
POLL = 0.01


class Kernel:
    """One kernel, for one notebook. Create it with `Kernel.start`. `close` removes all its processes and files."""

    def __init__(
        self, confined: SandboxedProcess, sandbox: Sandbox | None, *, limits: KernelLimits, caps: OutputCaps, key: str
    ) -> None:
        self._confined = confined
        self.run = confined.run
        """Its directories on the host."""
        self.confined = sandbox is not None
        """Whether it runs in a sandbox."""
        self.user = sandbox.user if sandbox is not None else None
        """The id of the user it runs as, if different from ours."""
        self._limits = limits
        self._caps = caps
        self._key = key.encode()
        self._names = map("request-{}".format, itertools.count(1))
        self._connections: dict[Channel, ZmtpConnection] = {}
        self._coming: dict[Channel, asyncio.Task[list[bytes]]] = {}
        self._death: str | None = None

    @classmethod
    async def start(cls, sandbox: Sandbox | None, *, limits: KernelLimits, caps: OutputCaps) -> "Kernel":
        """Start a kernel and wait until it responds. Without a sandbox, it has all rights of the user.

        Raises `SandboxUnavailable`, with the process's last error output as the hint, if it does not respond.
        """
        if find_spec("ipykernel") is None:
            raise MissingExtra("running notebooks", "notebook")
        user = sandbox.user if sandbox is not None else None
        inside = sandbox is not None
        run = new_run(user)
        key = secrets.token_hex(16)
        if sandbox is not None and sandbox.fonts is not None:
            shutil.copyfile(sandbox.fonts, run.fonts)
        ports = {f"{name}_port": port for name, port in PORTS.items()}
        address = str((SOCKET_DIR if inside else run.sockets) / "kernel")
        connection = {"transport": "ipc", "ip": address, "key": key, "signature_scheme": "hmac-sha256", **ports}
        (run.sockets / "connection.json").write_text(json.dumps(connection), encoding="utf-8")
        (run.sockets / "connection.json").chmod(0o644)
        program = kernel_program(run, limits=limits, caps=caps, inside=inside, user=user)
        confined = await SandboxedProcess.start(program, sandbox=sandbox, limits=limits, run=run)
        kernel = cls(confined, sandbox, limits=limits, caps=caps, key=key)
        try:
            async with asyncio.timeout(limits.start_seconds):
                await kernel._connect()
        except (TimeoutError, ZmtpBroken) as error:
            await kernel._die(str(error) or f"it did not answer within {limits.start_seconds:g} s")
            hint = confined.stderr_text.strip() or None
            raise SandboxUnavailable(f"no kernel could be started: {kernel.death}", hint=hint) from None
        except BaseException:
            await kernel.close()
            raise
        return kernel

    @property
    def death(self) -> str | None:
        """Why the kernel ended, or None while it is alive."""
        return self._death or (None if self._confined.alive else self._confined.reason())

    @property
    def alive(self) -> bool:
        """Whether it can still run cells."""
        return self._death is None and self._confined.alive

    @property
    def memory(self) -> int:
        """Bytes of memory in use by its processes."""
        return self._confined.memory

    async def execute(
        self, source: str, *, seconds: float | None = None, silent: bool = False
    ) -> AsyncIterator[Output | ExecutionEnd]:
        """Run a cell: yield its outputs as they arrive, then one `ExecutionEnd`.

        A cell that takes too long is interrupted or killed. A silent one does not increase the execution count.
        """
        if self._death is not None:
            yield ExecutionEnd(how="dead", reason=self._death)
            return
        cell = Execution(next(self._names), self._limits.trial_seconds if seconds is None else seconds)
        request = {
            "code": source,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        try:
            await self._ask("shell", "execute_request", cell.name, request)
            async for message in self._messages_of(cell):
                output = output_of(message, self._caps)
                if output is not None:
                    yield output
        except PeerHungUp as error:
            # Usually the process is ending, and the cause will be known shortly.
            await asyncio.wait([self._confined.ended], timeout=1.0)
            await self._die(str(error))
        except ZmtpBroken as error:
            await self._die(str(error))
        finally:
            if self._death is None and not cell.over:
                self._death = "the cell was given up"
        yield cell.ended(self._death)

    async def close(self) -> None:
        """Kill the kernel with every process it started, and remove its directories."""
        self._death = self._death or "the notebook was closed"
        for task in self._coming.values():
            task.cancel()
        await asyncio.gather(*self._coming.values(), return_exceptions=True)
        for connection in self._connections.values():
            connection.close()
        await self._confined.close()

    async def _connect(self) -> None:
        """Connect once, before any notebook code runs, because that code could replace the sockets."""
        for channel, kind in SOCKETS:
            self._connections[channel] = await self._open_connection(
                self.run.sockets / f"kernel-{PORTS[channel]}", kind
            )
        for connection in self._connections.values():
            connection.allowance = self._caps.flood
        name = next(self._names)
        await self._ask("shell", "kernel_info_request", name, {})
        waiting = {"kernel_info_reply", "iopub_welcome"}
        while waiting:
            waiting -= {message.kind for _, message in await self._arrived(None)}

    async def _open_connection(self, path: Path, kind: SocketKind) -> ZmtpConnection:
        """Connect to a socket as soon as it exists."""
        while self._confined.alive:
            with suppress(FileNotFoundError, PeerAbsent):
                if stat.S_ISSOCK(path.lstat().st_mode):
                    return await ZmtpConnection.connect(path, kind, most=self._caps.message)
            await asyncio.sleep(POLL)
        raise ZmtpBroken("it ended immediately")

    async def _messages_of(self, cell: Execution) -> AsyncIterator[JupyterMessage]:
        """Yield the messages that the kernel sends for a cell, until the cell is over."""
        for connection in self._connections.values():
            connection.allowance = self._caps.flood
        while not cell.over:
            arrived = await self._arrived(max(cell.deadline - now(), 0))
            for channel, message in arrived:
                if message.parent == cell.name:
                    cell.hear(channel, message)
                    yield message
            if not cell.over and now() >= cell.deadline:
                await self._hurry(cell)

    async def _hurry(self, cell: Execution) -> None:
        """Interrupt a cell that is past its deadline; if it already was interrupted, raise, so that the kernel dies."""
        if cell.interrupted:
            raise ZmtpBroken(
                f"it ran for more than {cell.seconds:g} s and did not stop when interrupted, so it was killed"
            )
        cell.interrupted = True
        cell.deadline = now() + self._limits.grace_seconds
        await self._ask("control", "interrupt_request", next(self._names), {})

    async def _arrived(self, seconds: float | None) -> list[tuple[Channel, JupyterMessage]]:
        """Return the next messages, at most one per channel, or none on timeout. No read is cancelled half-way."""
        for channel in HEARD:
            if channel not in self._coming:
                self._coming[channel] = asyncio.create_task(self._connections[channel].receive())
        done, _ = await asyncio.wait(self._coming.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        ready: list[Channel] = [channel for channel, task in self._coming.items() if task in done]
        return [(channel, read_message(self._coming.pop(channel).result())) for channel in ready]

    async def _ask(self, channel: Channel, kind: str, name: str, content: Mapping[str, Any]) -> None:
        await self._connections[channel].send(jupyter_request(kind, name, content, self._key))

    async def _die(self, reason: str) -> None:
        """Record why the kernel ended, and kill it if it is still running."""
        self._death = reason if self._confined.alive else self._confined.reason()
        await self.close()
