"""The image and compose file, without Docker: the steps run in a folder, the services beside a real PostgreSQL."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from starlette.testclient import TestClient

from foretell.cli.main import cli
from foretell.runs.settings import Settings
from foretell.web.app import create_app

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
TOKEN, PORT = "t" * 20, "8400"
FOLDERS = re.compile(r"(?<![\w./])/(build|wheels|data)\b")
"""The image's own folders, which lie in a temporary folder here."""
OF_THE_SYSTEM = ("apt-get", "useradd", "install")
"""Programs of build steps that change the system: they only have to be asked here."""
PATIENCE = 180


@dataclass(frozen=True)
class Step:
    """An instruction of the Dockerfile."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The command of an instruction that is written as a list."""
        return json.loads(self.rest[self.rest.index("[") :])


def steps() -> list[Step]:
    """Return the instructions in order, with continued lines joined."""
    lines = [line for line in DOCKERFILE.splitlines() if line.strip() and not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [Step(*line.split(maxsplit=1)) for line in text.splitlines()]


def step(name: str) -> Step:
    """Return the last instruction of a name."""
    return next(step for step in reversed(steps()) if step.name == name)


def in_context(path: str) -> bool:
    """Whether .dockerignore leaves a path in the build: the last pattern that fits decides."""
    kept = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and (fnmatch(path, pattern) or path.startswith(f"{pattern}/")):
            kept = line.startswith("!")
    return kept


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_only_a_user_without_rights_serves() -> None:
    names = [step.name for step in steps()]
    assert step("USER").rest == "foretell"
    assert names.index("USER") > max(n for n, name in enumerate(names) if name == "RUN")
    assert names[-1] == "CMD"
    assert "bubblewrap" in DOCKERFILE


def test_everything_that_is_copied_is_in_the_context_and_nothing_private() -> None:
    copied = [
        word for step in steps() if step.name == "COPY" and "--from" not in step.rest for word in step.rest.split()[:-1]
    ]
    assert copied
    assert all((ROOT / name).exists() and in_context(name) for name in copied)
    assert not any(map(in_context, (".env", ".git/config", "runs.db", "out/a", "tests/conftest.py")))


def test_the_extras_of_the_image_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (wanted,) = re.findall(r"\.whl\)\[([\w,]+)\]", DOCKERFILE)
    assert set(wanted.split(",")) <= set(extras)


def test_the_health_check_needs_no_token(tmp_path: Path) -> None:
    (path,) = re.findall(rf"127\.0\.0\.1:{PORT}(/\w*)", step("HEALTHCHECK").rest)
    app = create_app(Settings(home=tmp_path), token=TOKEN, host=step("CMD").words[-1])
    client = TestClient(app, base_url=f"http://127.0.0.1:{PORT}")
    assert client.get(path).status_code == 200
    assert client.get("/").status_code == 401


def test_the_services_call_commands_with_options_that_exist() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"database", "web", "worker"}
    called = [step("CMD").words, services["worker"]["command"], services["worker"]["healthcheck"]["test"][1:]]
    for program, name, *options in called:
        assert program == "foretell"
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        command.make_context(name, list(options))
    assert services["web"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert {name for service in services.values() for name in service.get("volumes", ())} == {
        "home:/data",
        "database:/var/lib/postgresql/data",
    }


@dataclass(frozen=True)
class Image:
    """What the build steps made: folders, and an environment with the installed wheel."""

    folder: Path

    def place(self, text: str) -> str:
        """Move the image's folders in a text into the temporary one."""
        return FOLDERS.sub(lambda found: f"{self.folder}{found[0]}", text)

    def run(self, text: str) -> None:
        """Run a build step in a shell."""
        done = subprocess.run(
            ["sh", "-eu", "-c", self.place(text)],
            cwd=self.folder / "build",
            env={
                "PATH": f"{self.folder}/venv/bin:{self.folder}/shims:{os.environ['PATH']}",
                "HOME": str(self.folder),
                # What the wheel needs is there, and nothing comes from a network.
                **dict.fromkeys(("PIP_NO_INDEX", "PIP_NO_DEPS", "PIP_IGNORE_INSTALLED", "PIP_NO_COMPILE"), "1"),
                "PIP_NO_BUILD_ISOLATION": "0",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def environment(self, **values: str) -> dict[str, str]:
        """Return the environment that the image and a service set."""
        set_here = dict(pair.split("=", 1) for pair in shlex.split(self.place(step("ENV").rest)))
        return {"PATH": f"{self.folder}/venv/bin:{os.environ['PATH']}", "HOME": str(self.folder)} | set_here | values


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Run COPY and RUN as the Dockerfile has them, in a folder."""
    for package in ("hatchling", "ensurepip"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed, so no wheel can be built: pip install 'foretell[dev]'")
    built = Image(tmp_path_factory.mktemp("image"))
    for name in ("build", "wheels", "data", "shims"):
        (built.folder / name).mkdir()
    for name in OF_THE_SYSTEM:
        shim = built.folder / "shims" / name
        shim.write_text("#!/bin/sh\n", encoding="utf-8")
        shim.chmod(0o755)
    subprocess.run([sys.executable, "-m", "venv", str(built.folder / "venv")], check=True)
    (packages,) = built.folder.glob("venv/lib/python*/site-packages")
    (packages / "tested.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    for step in steps():
        if step.name == "RUN":
            built.run(step.rest)
        elif step.name == "COPY" and "--from" not in step.rest:
            *sources, target = built.place(step.rest).split()
            for source in sources:
                _copy(ROOT / source, built.folder / "build" / target)
    return built


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


@pytest.fixture
def services(image: Image, postgres: str, tmp_path: Path) -> Iterator[dict[str, list[str] | dict[str, str]]]:
    """Start web app and worker with the environment of the compose file; yield how to look after them."""
    port = str(free_port())

    def local(words: list[str]) -> list[str]:
        return [word.replace(PORT, port).replace("0.0.0.0", "127.0.0.1") for word in words]

    environment = image.environment(FORETELL_DATABASE_URL=postgres, FORETELL_TOKEN=TOKEN)
    web = [*local(step("CMD").words), "--port", port]
    commands = {"web": web, "worker": COMPOSE["services"]["worker"]["command"]}
    running = []
    try:
        for name, words in commands.items():
            with (tmp_path / name).open("w") as log:
                running.append(subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=log, stderr=log))
        checks = {"web": local(step("HEALTHCHECK").words)}
        checks["worker"] = COMPOSE["services"]["worker"]["healthcheck"]["test"][1:]
        yield {"environment": environment, **checks}
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(PATIENCE)


def test_the_steps_make_an_image_whose_services_become_healthy(
    services: dict[str, Any], image: Image, tmp_path: Path
) -> None:
    said: dict[str, str] = {}
    until = time.monotonic() + PATIENCE
    for name in ("web", "worker"):
        wanted = "0 trials in progress" if name == "worker" else ""
        while wanted not in said.get(name, "no"):
            assert time.monotonic() < until, (tmp_path / name).read_text()
            done = subprocess.run(
                services[name], env=services["environment"], capture_output=True, text=True, check=False
            )
            said[name] = done.stdout if done.returncode == 0 else "no"
            time.sleep(0.2)
    where = subprocess.run(
        ["python", "-c", "import foretell; print(foretell.__path__[0])"],
        env=services["environment"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert where.startswith(str(image.folder / "venv")), "it serves the source and not the wheel"
