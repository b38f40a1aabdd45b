"""foretell audit: how much of a run could be leakage."""

from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result, progress_bar
from foretell.cli.request_options import request_options
from foretell.operations.requests import AuditRequest

if TYPE_CHECKING:
    from foretell.operations.result import Result


@click.command()
@request_options(AuditRequest)
@prints_result(".json")
def audit(request: AuditRequest) -> "Result":
    """Let a second model read what RUN was shown and refused, and count what the fence got wrong.

    Also searches the agent's reasoning for events after the cutoff that no source told it, and, given a run without
    tools and one without a fence, says how much of the score undetected leaks can be worth at most:

      foretell audit RUN --auditor openrouter:x-ai/grok-4.1-fast --closed-book RUN2 --unfenced RUN3

    Verdicts are journalled: a text is paid for once, and the same audit again costs nothing.
    """
    from foretell.operations.audit import audit

    with progress_bar("auditing") as progress:
        return audit(request, progress)
