"""Every study of trials by name: a name leads to "module:function" and to one line of what it asks."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from foretell.questions.problems import InputError

if TYPE_CHECKING:
    from foretell.arena.study import Material, Study

STUDIES: Mapping[str, tuple[str, str]] = {
    "trials": ("foretell.arena.studies.trials:study", "What does another trial bring? Score against 1, 2, … trials."),
    "aggregation": ("foretell.arena.studies.aggregation:study", "How to combine trials: rules against the logit mean."),
    "calibration": (
        "foretell.arena.studies.calibration:study",
        "What does calibration bring, in-sample, left out, and from the past alone?",
    ),
    "buildup": (
        "foretell.arena.studies.buildup:study",
        "Which part brings what: components one at a time, and a factorial.",
    ),
    "variance": (
        "foretell.arena.studies.variance:study",
        "Where does the spread of scores come from: question, method, chance?",
    ),
    "models": (
        "foretell.arena.studies.models:study",
        "Base models side by side, by the paper's protocol and by an honest one.",
    ),
}


def require_study(name: str) -> None:
    """Refuse a name that is no study's."""
    if name not in STUDIES:
        near = get_close_matches(name, STUDIES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(STUDIES)}"
        raise InputError(f"no study is called {name!r}", hint=hint)


def run_study(name: str, material: "Material") -> "Study":
    """The study of that name."""
    require_study(name)
    module, function = STUDIES[name][0].split(":")
    return getattr(import_module(module), function)(material)
