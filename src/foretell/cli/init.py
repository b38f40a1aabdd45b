"""foretell init: begin something of one's own."""

from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result
from foretell.cli.request_options import request_options
from foretell.operations.requests import InitBotRequest

if TYPE_CHECKING:
    from foretell.operations.result import Result


@click.group()
def init() -> None:
    """Begin something of your own."""


@init.command()
@request_options(InitBotRequest)
@prints_result()
def bot(request: InitBotRequest) -> "Result":
    """Write a bot into FOLDER: a repository that forecasts a Metaculus tournament on a schedule, on GitHub.

    It needs two secrets, a model's key and METACULUS_TOKEN, and spends no more a day than you say. README.md in the
    folder explains the rest.
    """
    from foretell.operations.init_bot import init_bot

    return init_bot(request)
