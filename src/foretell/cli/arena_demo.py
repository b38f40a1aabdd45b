"""foretell arena demo: a month of a live arena in about a minute, on a made-up exchange."""

from functools import partial
from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result
from foretell.cli.request_options import request_options
from foretell.operations.requests import ArenaDemoRequest

if TYPE_CHECKING:
    from foretell.operations.result import Result


@click.command()
@request_options(ArenaDemoRequest)
@prints_result(".json")
def demo(request: ArenaDemoRequest) -> "Result":
    """A month of an arena in about a minute: no key, no network, nothing real.

    An exchange on this machine lists made-up events over Kalshi's wire, with prices of noisy traders; a search engine
    finds made-up news about them. Scripted models behind a provider's socket read both, forecasters without a model
    take part, and all stages of an arena run in simulated time until every event has come out. The world knows the
    true probabilities: a row of the board says them, which nobody can beat but by luck.
    """
    from foretell.operations.arena_demo import arena_demo

    return arena_demo(request, partial(click.echo, err=True))
