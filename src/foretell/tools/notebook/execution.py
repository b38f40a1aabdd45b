"""One cell being run: what is still to come, and how it ended."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from foretell.tools.notebook.messages import Message

Channel = Literal["shell", "iopub", "control"]
Ending = Literal["done", "failed", "interrupted", "dead"]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The last thing that is said of a cell."""

    how: Ending
    """done; failed with an exception; interrupted because of its time, variables kept; dead, and everything gone."""
    reason: str = ""
    """In words, where it was not the cell's own exception."""
    count: int | None = None
    """The number the kernel gave the execution."""


@dataclass(kw_only=True)
class Execution:
    """How far one execution has come."""

    name: str
    seconds: float
    deadline: float = 0.0
    interrupted: bool = False
    idle: bool = False
    reply: Message | None = None

    def __post_init__(self) -> None:
        self.deadline = now() + self.seconds

    @property
    def over(self) -> bool:
        """Whether everything was said."""
        return self.idle and self.reply is not None

    def hear(self, channel: Channel, message: Message) -> None:
        """Take note of a message that belongs to it."""
        if channel == "shell" and message.kind == "execute_reply":
            self.reply = message
        elif channel == "iopub" and message.kind == "status":
            self.idle = self.idle or message.text("execution_state") == "idle"

    def ended(self, death: str | None) -> Ended:
        """How it ended, given why the kernel died, if it did."""
        if death is not None or self.reply is None:
            return Ended(how="dead", reason=death or "")
        given = self.reply.content.get("execution_count")
        count = given if isinstance(given, int) and 0 <= given < 1_000_000 else None
        if self.interrupted:
            return Ended(how="interrupted", reason=f"it ran for more than {self.seconds:g} s", count=count)
        return Ended(how="done" if self.reply.text("status") == "ok" else "failed", count=count)


def execute_request(source: str, *, silent: bool) -> dict[str, Any]:
    """The content of the request to run some code."""
    return {
        "code": source,
        "silent": silent,
        "store_history": not silent,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }


def now() -> float:
    """The time of the loop, in seconds."""
    return asyncio.get_running_loop().time()
