"""A PostgreSQL server in a temporary folder, started for a test and removed after it."""

import os
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
USER = "foretell"
OTHER_USERS = ("postgres", "nobody")
"""User that runs it if the tests run as root, because it refuses to run as root."""
SECONDS = 60
PORTS = range(15_000, 32_000)
"""Ports below the ephemeral range of the system, so that a port is still free after an outage."""
TRIES = 5
GUARD = """
while kill -0 "$1"; do sleep 2; done
kill -QUIT "$(head -n 1 "$2/data/postmaster.pid")"
sleep 1
rm -rf "$2"
"""
"""Program that stops the server if the test process is killed, because the server is not its child."""
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
log_min_messages = fatal
"""


def binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl, of the newest version; None if PostgreSQL is not installed."""
    paths = [path for pattern in PLACES for path in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    beside = shutil.which("pg_ctl")
    paths += [Path(beside).parent] if beside else []
    return next((path for path in paths if (path / "initdb").exists() and (path / "pg_ctl").exists()), None)


class LocalPostgres:
    """Listens on a free port of this machine with a superuser `foretell`. Use as a context manager.

    `stop` and `start` simulate an outage: it restarts on the same port with all committed data.
    """

    def __init__(self, *, safe: bool = True) -> None:
        """Without `safe` nothing waits for the disk, which is faster; data still survive if the server is killed."""
        folder = binaries()
        if folder is None:
            raise FileNotFoundError("no PostgreSQL server is installed: initdb and pg_ctl were not found")
        self._bin = folder
        self._as: dict[str, Any] = _other_user()
        self.folder = Path(tempfile.mkdtemp(prefix="foretell-pg-", dir=_open_to_all() if self._as else None))
        if self._as:
            shutil.chown(self.folder, self._as["user"], self._as["group"])
        self._data = self.folder / "data"
        self._password = secrets.token_hex(16)
        self.port = 0
        self._guard = _guarded(self.folder)
        try:
            self._prepare(safe)
            self._start_somewhere()
        except BaseException:
            self.close()
            raise

    def _prepare(self, safe: bool) -> None:
        file = self.folder / "password"
        file.write_text(self._password)
        if self._as:
            shutil.chown(file, self._as["user"], self._as["group"])
        how = ("-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "-N")
        self._run("initdb", "-D", self._data, "-U", USER, "--pwfile", file, *how)
        # Turn autovacuum off: with a hundred databases it would start a process twice a second.
        fast = "" if safe else "fsync = off\nfull_page_writes = off\nautovacuum = off\n"
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(SETTINGS + fast)

    def _start_somewhere(self) -> None:
        """Start on a port that was just free; try again if another process has taken it."""
        for tries_left in reversed(range(TRIES)):
            self.port = _free_port()
            try:
                self.start()
            except RuntimeError:
                if not tries_left:
                    raise
            else:
                return

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database, with its password."""
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """Create an empty database; return its address."""
        # Imported here because it is optional; `createdb` would be a process for each of a hundred databases.
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url(), autocommit=True) as session:
            session.execute(sql.SQL("create database {}").format(sql.Identifier(database)))
        return self.url(database)

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        self._run("pg_ctl", "-D", self._data, "-w", "-t", SECONDS, "-l", self.log, "-o", f"-p {self.port}", "start")

    @property
    def log(self) -> Path:
        """Return the log of the server."""
        return self.folder / "log"

    def stop(self, how: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it; `immediate` is like a crash and breaks all sessions."""
        self._run("pg_ctl", "-D", self._data, "-w", "-t", SECONDS, "-m", how, "stop")

    def outage(self, seconds: float) -> None:
        """Crash, stay down for a while, and restart."""
        self.stop("immediate")
        time.sleep(seconds)
        self.start()

    def cpu(self) -> float:
        """Return the CPU seconds of the server so far, without closed sessions; from Linux's /proc."""
        first = (self._data / "postmaster.pid").read_text().split()[0]
        tasks = [first, *Path(f"/proc/{first}/task/{first}/children").read_text().split()]
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in tasks]
        return sum(int(ticks) for fields in stats for ticks in fields[11:13]) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Stop it and remove the folder."""
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        self._guard.kill()
        self._guard.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "LocalPostgres":
        """Return the server, which is already listening."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove it."""
        self.close()

    def _run(self, program: str, *arguments: object) -> None:
        # Write the output to a file: a server that inherited a pipe would block its reader forever.
        with (self.folder / f"{program}.out").open("w+", encoding="utf-8") as output:
            command = [str(self._bin / program), *map(str, arguments)]
            environment = {**os.environ, "PGPASSWORD": self._password}
            done = subprocess.run(
                command, stdout=output, stderr=output, cwd=self.folder, env=environment, check=False, **self._as
            )
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} ended with {done.returncode}: {output.read()[-2000:]}")


def _guarded(folder: Path) -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    command = ["/bin/sh", "-c", GUARD, "guard", str(os.getpid()), str(folder)]
    return subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)


def _other_user() -> dict[str, Any]:
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    import pwd  # Not on every platform.

    for name in OTHER_USERS:
        try:
            getpwnam = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": getpwnam.pw_uid, "group": getpwnam.pw_gid, "extra_groups": []}
    raise FileNotFoundError(f"PostgreSQL does not run as root, and there is none of {', '.join(OTHER_USERS)}")


def _open_to_all() -> Path | None:
    """Return a folder for temporary files that another user can reach; None for the usual one."""
    usual = Path(tempfile.gettempdir()).resolve()
    reachable = all(path.stat().st_mode & 0o001 for path in (usual, *usual.parents))
    return None if reachable else Path("/tmp")


def _free_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
