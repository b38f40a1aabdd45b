"""The names of question sets: files, data sets, and the events and tournaments of markets."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from foretell.data.datasets.dataset import FileFormat
from foretell.data.datasets.question_files import READERS
from foretell.data.markets.market import Market
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.plugins import Names, exists, load, names
from foretell.questions.errors import InputError

DATASETS = Names("datasets")
MAX_FILES = 50
"""Maximum number of files in a folder suggested as question sets."""
FALLBACK_FORMAT = "questions"
"""The format of a file that no other format recognises."""
TOURNAMENT_PREFIX = "metaculus:"
TOURNAMENT_HINT = "write metaculus:TOURNAMENT, such as metaculus:minibench, or metaculus:TOURNAMENT,again=7"
SLUG = pattern(r"[A-Za-z0-9_-]{1,80}")
"""The short name of a tournament or event."""


@frozen
class SetName:
    """What the name of a question set refers to."""

    kind: Literal["datasets", "markets"]
    name: str
    argument: str = ""
    """The part after the colon: a file, round, event, series or tournament."""


def set_names() -> list[str]:
    """Return the forms of the names of question sets, including those of plug-ins."""
    formats = [f"{name}:FILE" if _is_format(name) else name for name in names("datasets")]
    return ["FILE", *formats, *(f"{name}:NAME" for name in names("markets") if load("markets", name).events)]


def sets_here(folder: Path = Path()) -> list[str]:
    """Return usable names: question files in a folder, rounds on this machine, data sets and markets.

    The user has to complete a name that ends in a colon.
    """
    from foretell.data.datasets.forecastbench_download import pulled_rounds, rounds_cache

    files = sorted(path.name for path in folder.glob("*") if path.suffix in READERS and path.is_file())[:MAX_FILES]
    rounds = pulled_rounds(rounds_cache())[::-1]
    whole = [name for name in names("datasets") if not _is_format(name)]
    markets = [name for name in names("markets") if load("markets", name).events]
    parts = [f"{name}:" for name in markets]
    return [*files, *whole, *(f"forecastbench:{day}" for day in rounds), *markets, *parts]


def find_set(name: str, folders: Sequence[Path] = (Path(),)) -> SetName:
    """Return the data set, market or file with this name. The address of a market's page is a name too."""
    if name.startswith(("http://", "https://")):
        return _set_at(name)
    first, colon, argument = name.partition(":")
    first = first.replace("-", "_") if exists("markets", first.replace("-", "_")) else first
    path = Path(path_in(name, folders))
    is_file = not colon and path.exists()  # A file may have the name of a format or market.
    if exists("datasets", first) and not _is_format(first):
        return SetName(kind="datasets", name=first, argument=argument)
    if exists("datasets", first) and not is_file:
        file = path_in(argument, folders)
        if argument and Path(file).exists():
            return SetName(kind="datasets", name=first, argument=file)
        is_argument = load("datasets", first).known(argument) or Path(argument).suffix in READERS
        if is_argument or not exists("markets", first):
            return SetName(kind="datasets", name=first, argument=argument)
    if exists("markets", first) and not is_file:
        return SetName(kind="markets", name=first, argument=argument)
    if not path.exists():
        similar = get_close_matches(first, [*names("datasets"), *names("markets")], n=1) if colon else []
        hint = f"did you mean {similar[0]}:{argument}?" if similar else None
        raise InputError(f"{name!r} is neither a file nor one of {', '.join(set_names())}", hint=hint)
    return SetName(kind="datasets", name=_format_of(path), argument=str(path))


def _set_at(address: str) -> SetName:
    parts = urlsplit(address)
    for name in names("markets"):
        market: Market = load("markets", name)
        if market.id_in_address is not None and any(is_at(parts.hostname or "", host) for host in market.hosts):
            id = market.id_in_address([step for step in parts.path.split("/") if step], parse_qs(parts.query))
            if id:
                return SetName(kind="markets", name=name, argument=id)
    raise InputError(f"{address} is not a page of a known market", hint=f"markets are {', '.join(names('markets'))}")


def is_at(host: str, site: str) -> bool:
    """Whether a host is a site or one of its subdomains.

    >>> is_at("www.metaculus.com", "metaculus.com"), is_at("notmetaculus.com", "metaculus.com")
    (True, False)
    """
    return host == site or host.endswith(f".{site}")


def path_in(name: str, folders: Sequence[Path]) -> str:
    """Return the path of a file in the first folder that has it, or the name if none has."""
    return next((str(folder / name) for folder in folders if (folder / name).exists()), name)


def folders_of(started_in: str) -> tuple[Path, ...]:
    """Return the folders of a stored run's files: where it was started, then the current one."""
    return (Path(started_in), Path()) if started_in else (Path(),)


def _is_format(name: str) -> bool:
    return isinstance(load("datasets", name), FileFormat)


def _format_of(path: Path) -> str:
    """The first format that recognises a file."""
    for dataset in DATASETS:
        plugin = load("datasets", dataset)
        if dataset != FALLBACK_FORMAT and isinstance(plugin, FileFormat) and plugin.recognises(path):
            return dataset
    return FALLBACK_FORMAT


@frozen
class Tournament:
    """A tournament by its slug or number.

    >>> Tournament.read("metaculus:minibench,again=7")
    Tournament(slug='minibench', again=7.0)
    """

    slug: str
    again: float | None = None
    """Days after which a question is asked again; None asks every question once."""

    @classmethod
    def read(cls, name: str) -> "Tournament":
        """Parse the name of a question set."""
        slug, again = split_again(name.removeprefix(TOURNAMENT_PREFIX))
        if not SLUG.fullmatch(slug):
            raise InputError(f"{slug!r} is not the name of a tournament", column="questions", hint=TOURNAMENT_HINT)
        return cls(slug=slug, again=again)


def split_again(argument: str) -> tuple[str, float | None]:
    """Split a name from the number of days after which questions are asked again.

    >>> split_again("KXFED,again=7"), split_again("KXFED")
    (('KXFED', 7.0), ('KXFED', None))
    """
    name, *options = argument.split(",")
    again: float | None = None
    for option in options:
        key, _, value = option.partition("=")
        try:
            again = float(value)
        except ValueError:
            again = 0.0
        if key.strip() != "again" or again <= 0:
            raise InputError(f"cannot use {option!r}", column="questions", hint=TOURNAMENT_HINT)
    return name, again
