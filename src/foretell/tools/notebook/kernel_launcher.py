"""Runs inside the sandbox before any notebook code: sets limits, then starts a real ipykernel that cuts its own output.

It is passed as source text and cannot import foretell. It cuts output, which is done again outside, because notebook
code can undo it. It sets limits, which cannot be undone without privileges.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

ROOM = 4_096
OUTPUTS = ("stream", "display_data", "execute_result", "update_display_data")


def limit(limits: dict[str, int]) -> None:
    """Set hard resource limits, which neither this process nor a child can raise again."""
    import resource  # Windows has none.

    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent dies. A sandbox does this itself."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def cut(text: str, most: int) -> str:
    """Return a text that is too long as its beginning and end, with the number of characters left out between them."""
    if len(text) > most:
        head, tail = most * 2 // 3, most // 3
        text = f"{text[:head]}\n[{len(text) - head - tail:,} characters left out]\n{text[-tail:]}"
    return text.encode("utf-8", "replace").decode()  # Lone surrogates cannot be sent.


class OutputCutter:
    """Keeps the output of each cell within the caps."""

    def __init__(self, caps: dict[str, int]) -> None:
        self.caps = caps
        self.cell = ""
        self.sent = 0
        self.counts: dict[str, int] = {}

    def full(self, message: dict[str, Any]) -> bool:
        """Whether a cell has sent so much that further output is dropped uncut. The cell's result is never dropped."""
        cell, kind = message.get("parent_header", {}).get("msg_id", ""), _kind(message)
        if cell != self.cell:
            self.cell, self.sent, self.counts = cell, 0, {}
        self.counts[kind] = count = self.counts.get(kind, 0) + 1
        # Printed text arrives in small pieces that are joined outside, so more pieces are allowed.
        most = self.caps["pieces"] * (50 if kind == "stream" else 5)
        if kind == "stream" and count == most:
            message["content"] = {**message["content"], "text": "\n[further output left out]\n"}
        return kind != "execute_result" and (count > most or self.sent > 2 * self.caps["cell"])

    def cut(self, message: dict[str, Any]) -> None:
        """Cut the content of a message in place."""
        message["content"] = content = dict(message["content"])
        if "text" in content:
            content["text"] = cut(content["text"], self.caps["text"])
            self.sent += len(content["text"])
        elif "data" in content:
            content["data"] = self.forms(content["data"])
        elif "traceback" in content:
            content["traceback"] = [cut(str(line), 20_000) for line in content["traceback"][-60:]]
            content["evalue"] = cut(str(content.get("evalue", "")), 20_000)

    def forms(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return all representations of one display, without those that are too large."""
        fitting: dict[str, Any] = {}
        for mime, value in data.items():
            if mime == "text/plain":
                fitting[mime] = cut(str(value), self.caps["text"])
            elif isinstance(value, str) and len(value) <= self.most(mime):
                fitting[mime] = cut(value, len(value))
            else:
                fitting.setdefault("text/plain", f"[{mime} left out: it is too large]")
            self.sent += len(fitting.get(mime, ""))
        return fitting

    def most(self, mime: str) -> int:
        """Return the maximum length of a representation, as encoded for sending."""
        return self.caps["image"] * 4 // 3 + ROOM if mime.startswith("image/") else self.caps["html"]


def start(options: dict[str, Any]) -> None:
    """Turn this process into a Jupyter kernel."""
    sys.modules["debugpy"] = None  # pyright: ignore[reportArgumentType] - more than half of a kernel's start, and unused
    import zmq
    from ipykernel.kernelapp import IPKernelApp
    from jupyter_client.session import Session
    from traitlets.config import Config

    cutter = OutputCutter(options["caps"])

    class CuttingSession(Session):
        """A session that cuts every outgoing message."""

        def send(self, stream: Any, msg_or_type: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(msg_or_type, dict) and _kind(msg_or_type) in OUTPUTS and cutter.full(msg_or_type):
                return msg_or_type
            return super().send(stream, msg_or_type, *args, **kwargs)

        def serialize(self, msg: Any, ident: Any = None) -> Any:
            if _kind(msg) in (*OUTPUTS, "error", "execute_reply"):
                cutter.cut(msg)
            return super().serialize(msg, ident)

    class App(IPKernelApp):
        """A kernel app whose outputs are queued until we read them, so that none is lost, not even the final "done"."""

        def init_iopub(self, context: Any) -> None:
            context.setsockopt(zmq.SNDHWM, 0)
            super().init_iopub(context)

    config = Config()
    config.HistoryManager.enabled = False
    config.IPCompleter.use_jedi = False
    config.InteractiveShell.colors = "nocolor"
    config.IPKernelApp.connection_file = options["connection"]
    app = App.instance(config=config, session=CuttingSession(), log_level=50)
    app.initialize([])
    app.start()


def _kind(message: dict[str, Any]) -> str:
    return message.get("header", {}).get("msg_type", "")


if __name__ == "__main__":
    options: dict[str, Any] = json.loads(sys.argv[1])
    sys.argv = sys.argv[:1]
    limit(options["limits"])
    # Directories that this Python would not search by itself, such as those of packages installed for one user.
    sys.path += [path for path in options["packages"] if path not in sys.path]
    if options.get("parent"):
        die_with_parent(options["parent"])
    start(options)
