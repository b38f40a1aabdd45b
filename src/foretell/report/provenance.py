"""Provenance of a report: foretell's version, the date, the command, and how its intervals were resampled.

An interface that starts an operation sets its command with `running_command`. Reports that are written while the
operation runs read the command from here, so that no function has to pass it on. A command contains no secret.
"""

import os
import re
import shlex
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from foretell.data.clock import CLOCK_VARIABLE, open_clock
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.server_replies import HIDDEN, redacted
from foretell.report.markup import clean, shorten
from foretell.request import OperationRequest, flags, hints, is_list, on_command_line

LONGEST_COMMAND = 1200
"""Characters of a command that are shown; a longer one is shortened in its middle."""
SHORTEST_SECRET = 8
_SECRET_NAME = pattern(r"(?:^|_)(?:key|token|secret|password)$", re.IGNORECASE)
_URL_USER = pattern(r"(?<=://)[^/\s'\"]+(?=@)")
_URL_SECRET = pattern(r"([?&][\w.-]*(?:key|token|secret|password|signature)=)[^&\s'\"#]+", re.IGNORECASE)
_COMMAND: ContextVar[str] = ContextVar("command", default="")


@cache
def program() -> str:
    """Return the name and version of this program."""
    return f"foretell {version('foretell')}"


@frozen
class Provenance:
    """Provenance of a report or page."""

    program: str
    """Name and version."""
    at: datetime
    command: str = ""
    """The command or Python call that makes it again; empty if it is not known."""
    seed: int | None = None
    """Seed of the resampling; None if nothing was resampled."""
    draws: int | None = None

    @classmethod
    def now(cls, settings: Mapping[str, Any] | None = None, *, command: str = "") -> "Provenance":
        """Return the provenance of a report that is made now, by default with the command that is running.

        `settings` are those of the result, with the `seed` and `draws` of its intervals if it has any.
        """
        options = settings or {}
        return cls(
            program=program(),
            at=open_clock(os.environ.get(CLOCK_VARIABLE, ""))(),
            command=command or current_command(),
            seed=options.get("seed") if "draws" in options else None,
            draws=options.get("draws"),
        )

    @property
    def origin(self) -> str:
        """Program and date, as a report's footer begins."""
        return f"Made by {self.program} on {self.at:%Y-%m-%d %H:%M} UTC"

    @property
    def resampling(self) -> str:
        """Seed and number of draws; empty if nothing was resampled.

        >>> Provenance(program="foretell 1.0", at=datetime(2026, 7, 1), seed=0, draws=2000).resampling
        'Intervals: seed 0, 2,000 draws.'
        """
        seed = f"seed {self.seed}, " if self.seed is not None else ""
        return f"Intervals: {seed}{self.draws:,} draws." if self.draws is not None else ""

    def to_markdown(self) -> str:
        """Return the footer of a Markdown report.

        >>> provenance = Provenance(program="foretell 1.0", at=datetime(2026, 7, 1), command="foretell show ab12")
        >>> print(provenance.to_markdown(), end="")
        ---
        <BLANKLINE>
        Made by foretell 1.0 on 2026-07-01 00:00 UTC with `foretell show ab12`.
        """
        longest = max(map(len, re.findall("`+", self.command)), default=0)
        ticks, gap = "`" * (longest + 1), " " * bool(longest)
        command = f" with {ticks}{gap}{clean(self.command)}{gap}{ticks}" if self.command else ""
        return f"---\n\n{f'{self.origin}{command}. {self.resampling}'.rstrip()}\n"


# The command that is running.


def current_command() -> str:
    """Return the command that is running, without secrets; empty if none was named."""
    return _COMMAND.get()


@contextmanager
def running_command(command: str) -> Generator[None]:
    """Set the command of everything that is made inside. Inside another command, the outer one is kept."""
    if not command or _COMMAND.get():
        yield
        return
    token = _COMMAND.set(shorten(_without_secrets(command), LONGEST_COMMAND))
    try:
        yield
    finally:
        _COMMAND.reset(token)


def command_text(words: str, request: OperationRequest, files: Sequence[Path] = ()) -> str:
    """Return the command of a request as a user can type it, with all that differs from the defaults."""
    arguments, options = list[str](), list[str]()
    for name, info in type(request).model_fields.items():
        value, default = getattr(request, name), info.get_default(call_default_factory=True)
        if value is default or (type(value) is type(default) and value == default) or not on_command_line(info):
            continue
        if hints(info).get("argument"):
            arguments += [_value_text(item) for item in (value if is_list(info) else (value,))]
        else:
            options += _option(name, info, value)
    options += [word for path in files for word in ("--out", str(path))]
    return " ".join(["foretell", *words.split(), *map(_shell_word, [*arguments, *options])])


def _shell_word(word: str) -> str:
    """Quote a word for the shell; a path in the user's home begins with `~`, to hide the user's name."""
    home = f"{Path.home()}/"
    return f"~/{shlex.quote(word.removeprefix(home))}" if word.startswith(home) else shlex.quote(word)


def call_text(name: str, *arguments: Any, **options: Any) -> str:
    """Return the call of a Python function of foretell.

    >>> call_text("score_arena", Path("events.jsonl"), draws=500)
    "foretell.score_arena('events.jsonl', draws=500)"
    """

    def as_text(value: Any) -> str:
        return repr(value) if isinstance(value, bool | int | float) else _quoted(value)

    shown = [as_text(value) for value in arguments]
    shown += [f"{key}={HIDDEN if _SECRET_NAME.search(key) else as_text(value)}" for key, value in options.items()]
    return f"foretell.{name}({', '.join(shown)})"


def _quoted(value: Any) -> str:
    text = _value_text(value)
    return repr(text) if isinstance(value, str | Path | date) else text


def _option(name: str, info: FieldInfo, value: Any) -> list[str]:
    """Return the words of an option."""
    flag = flags(name, info)[-1]
    if _SECRET_NAME.search(name):
        return [flag, HIDDEN]
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag.removeprefix('--')}"]
    if isinstance(value, Mapping):
        pairs: Mapping[Any, Any] = value
        return [word for key, item in pairs.items() for word in (flag, f"{key}={_value_text(item)}")]
    if is_list(info):
        return [word for item in value for word in (flag, _value_text(item))]
    return [flag, *map(_value_text, value if isinstance(value, tuple) else (value,))]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - a pair


def _value_text(value: Any) -> str:
    """Return a value as it is typed; a function or table of a Python program is shown by its name or type."""
    if isinstance(value, str | int | float | Path | BaseModel):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def _without_secrets(text: str) -> str:
    """Return a text without the passwords and keys in addresses, and without the keys in this environment."""
    text = _URL_SECRET.sub(rf"\1{HIDDEN}", _URL_USER.sub(HIDDEN, text))
    secrets = (value for name, value in os.environ.items() if _SECRET_NAME.search(name))
    # A variable such as SSH_KEY may be the path of a file, which is no secret.
    return redacted(text, (value for value in secrets if len(value) >= SHORTEST_SECRET and not value.startswith("/")))
