"""CPU use of a server with many idle event streams, compared with the same server without any.

    python benchmarks/web_streams.py [LISTENERS] [SECONDS]

The streams follow a run in which nothing happens. Prints the share of a core that the server uses with none and with
all of them, what one stream adds, and how long a page takes meanwhile, as a ratio to the same page without streams.
"""

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from fakes.stored_run import StoredRunBuilder
from foretell.runs.store import RunStore

TICKS = os.sysconf("SC_CLK_TCK")
ROUNDS = 15


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _share(process: int, seconds: float) -> float:
    """Return the share of one core that a process used over a number of seconds."""
    before = _cpu_seconds(process)
    time.sleep(seconds)
    return (_cpu_seconds(process) - before) / seconds


def _page_ms(base: str) -> float:
    def once() -> float:
        start = time.perf_counter()
        urllib.request.urlopen(f"{base}/runs", timeout=30).read()
        return 1000 * (time.perf_counter() - start)

    once()
    return statistics.median(once() for _ in range(ROUNDS))


def _listen(port: int, path: str) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port))
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert b" 200 " in line.recv(4096)
    return line


def main(listeners: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as home:
        store = RunStore(Path(home) / "runs.db")
        run = StoredRunBuilder(questions=5, trials=3).begin(store)
        store.close()
        server = subprocess.Popen(
            [sys.executable, "-m", "foretell", "serve", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "FORETELL_HOME": home, "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert server.stdout is not None
            match = re.search(r"http://127\.0\.0\.1:(\d+)", server.stdout.readline())
            assert match
            port = int(match[1])
            base = f"http://127.0.0.1:{port}"
            page = _page_ms(base)
            alone = _share(server.pid, seconds)
            lines = [_listen(port, f"/api/runs/{run}/stream?brief=true") for _ in range(listeners)]
            time.sleep(2)
            busy = _share(server.pid, seconds)
            paged = _page_ms(base)
            for line in lines:
                line.close()
        finally:
            server.terminate()
            server.wait()
    each = (busy - alone) / listeners
    print(f"{'nobody listens':28} {alone:8.2%} of a core")
    print(f"{f'{listeners} idle listeners':28} {busy:8.2%} of a core; {1000 * each:.3f} thousandths of a core each")
    print(f"{'a page meanwhile':28} {paged / page:8.2f} × the page without listeners ({page:.0f} ms)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, float(sys.argv[2]) if len(sys.argv) > 2 else 10)
