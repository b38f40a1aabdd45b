"""Public question sets on this machine: download and list them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from foretell.data.datasets.forecastbench_download import (
    FORECASTBENCH_URL,
    ForecastBenchDownload,
    PulledFile,
    pulled_rounds,
    read_pulled,
    rounds_cache,
)
from foretell.data.datasets.prophet_arena import dataset_folder, download_events
from foretell.data.http import AsyncHttpClient, HttpLimits, Progress, SourceError
from foretell.data.markets.prophet_arena import MARKET
from foretell.data.service import ServiceConfig
from foretell.frozen import frozen
from foretell.operations.requests.data import (
    DataListRequest,
    DataPullRequest,
)
from foretell.questions.errors import InputError
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.settings import load_settings

WatchDownload = Callable[[str], Progress]
"""File name → a function that is called with the progress of its download."""


@frozen
class PullResult(Result):
    """Files that were downloaded or already there."""

    folder: Path
    files: tuple[PulledFile, ...]

    def __str__(self) -> str:
        lines: list[str] = []
        for file in self.files:
            size = f", {file.bytes / 1e6:.1f} MB" if file.bytes else ""
            revised = f", {file.revised} outcomes revised" if file.revised else ""
            lines.append(f"{file.name}: {file.state}{size}{revised}")
        return "\n".join([*lines, f"in {self.folder}"])


async def pull(request: DataPullRequest, watch: WatchDownload | None = None) -> PullResult:
    """Download rounds with their outcomes so far; intact files are not downloaded again."""
    if request.source == "prophet-arena":
        return await _pull_arena(request)
    from foretell.runs.due_prices import keep_due_prices

    cache, settings = rounds_cache(), load_settings()
    try:
        async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as client:
            address = settings.addresses.get("forecastbench") or FORECASTBENCH_URL
            source = ForecastBenchDownload(cache, client, url=address)
            days = sorted({*request.rounds}) or [await source.latest()]
            files = await source.pull(days, watch)
        files += await keep_due_prices(cache, days, settings) if request.prices else []
    except SourceError as error:
        raise InputError(str(error)) from None
    return PullResult(files=tuple(files), folder=cache.root)


async def _pull_arena(request: DataPullRequest) -> PullResult:
    if not request.dataset:
        raise InputError("no data set is named", column="--dataset", hint="e.g. --dataset SLUG, or SLUG@VERSION")
    settings = load_settings()
    folder = dataset_folder()
    try:
        async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as http:
            address = settings.addresses.get("prophet_arena")
            config = ServiceConfig(http=http, key=settings.key("prophet_arena"), address=address)
            path = await download_events(MARKET.client(config), request.dataset, folder)
    except SourceError as error:
        raise InputError(str(error)) from None
    return PullResult(files=(PulledFile(name=path.name, state="downloaded", bytes=path.stat().st_size),), folder=folder)


@frozen
class RoundsResult(Result):
    """Rounds on this machine."""

    lines = "rounds"
    folder: Path
    rounds: tuple[dict[str, Any], ...]

    def print(self, console: Console) -> None:
        """Print a table, or how to download a first round."""
        if not self.rounds:
            show_text(console, f"nothing in {self.folder}; try: foretell data pull forecastbench\n")
            return
        columns = {TextColumn(head="source"): "source", TextColumn(head="round"): "round"}
        columns |= {TextColumn(head=head, right=True): head for head in ("questions", "targets", "resolved")}
        show_table(console, self.rounds, {**columns, TextColumn(head="files", shrink=20): "files"})
        show_text(console, f"in {self.folder}\n")


def list_rounds(_: DataListRequest) -> RoundsResult:
    """List the rounds on this machine, with the number of resolved targets."""
    cache, rounds = rounds_cache(), list[dict[str, Any]]()
    for day in pulled_rounds(cache):
        row: dict[str, Any] = {"source": "forecastbench", "round": day}
        try:
            pulled = read_pulled(cache, day)
        except InputError as error:
            row |= {"questions": None, "targets": None, "resolved": None, "files": f"{error.problem}: {error.hint}"}
        else:
            targets = sum(len(question.targets) for question in pulled.questions)
            row |= {"questions": len(pulled.questions), "targets": targets, "resolved": len(pulled.outcomes())}
            row["files"] = "intact"
        rounds.append(row)
    return RoundsResult(rounds=tuple(rounds), folder=cache.root)
