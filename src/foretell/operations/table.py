"""All operations: what each is called, which request it takes, and which function answers it.

The parity tests go through this table, and so does the stub of the Python interface.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from foretell.operations import requests
from foretell.request import OperationRequest


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing that a user can ask for."""

    title: str
    request: type[OperationRequest]
    place: str
    """module:attribute of the function; loaded when it is first called."""
    result: str
    """The name of the result's class, in the same module."""

    @property
    def function(self) -> Any:
        """What answers the request."""
        module, name = self.place.split(":")
        return getattr(import_module(module), name)


OPERATIONS = {
    "ask": Operation(
        title="One question answered with a probability and its reasons.",
        request=requests.AskRequest,
        place="foretell.operations.ask:ask",
        result="AskResult",
    ),
    "grow_tree": Operation(
        title="A claim taken apart into claims, judged and put together again.",
        request=requests.TreeRequest,
        place="foretell.operations.tree:grow_tree",
        result="TreeResult",
    ),
    "what_if": Operation(
        title="Other probabilities at some claims of a tree.",
        request=requests.WhatIfRequest,
        place="foretell.operations.what_if:what_if",
        result="ScenarioComparison",
    ),
    "run": Operation(
        title="A forecaster over many questions.",
        request=requests.RunRequest,
        place="foretell.operations.run:run",
        result="RunResult",
    ),
    "list_runs": Operation(
        title="The runs on this machine.",
        request=requests.RunsRequest,
        place="foretell.operations.run:list_runs",
        result="RunsResult",
    ),
    "show": Operation(
        title="The answers of a run, and every step to them.",
        request=requests.ShowRequest,
        place="foretell.operations.run:show",
        result="ShowResult",
    ),
    "replay": Operation(
        title="A run computed again from its journal.",
        request=requests.ReplayRequest,
        place="foretell.operations.run:replay",
        result="ReplayResult",
    ),
}
"""Name in Python → operation."""
