"""How the trials of a run are to be combined, as named on a command line."""

from pathlib import Path
from typing import get_args

from foretell.app.commands.options import COMBINE
from foretell.arena.results import Combining
from foretell.forecasters.combine.aggregate import Rule
from foretell.forecasters.priors import Rates
from foretell.questions.problems import InputError


def combining_of(name: str, rates: Rates | None = None) -> Combining:
    """A rule by its name, the untaught default, or a rule that `foretell calibrate fit` wrote.

    >>> combining_of("median").rule
    'median'
    """
    if name in get_args(Rule):
        return Combining(rule=name)  # pyright: ignore[reportArgumentType]
    if name == "judged":
        return Combining(judged=True)
    if name == "default":
        from foretell.forecasters.combine.default import UNTAUGHT

        return Combining(fitted=UNTAUGHT, rates=rates)
    if Path(name).suffix == ".json":
        from foretell.forecasters.combine.saving import load

        return Combining(fitted=load(Path(name)), rates=rates)
    raise InputError(f"there is no way to combine called {name!r}", column="--combine", hint=COMBINE)
