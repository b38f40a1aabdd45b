"""Every study by name: a name leads to "module:function" and to one line of what it asks."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from foretell.questions.errors import InputError

if TYPE_CHECKING:
    from foretell.report.study import StudyInput, StudyResult

STUDIES: Mapping[str, tuple[str, str]] = {
    "trials": ("foretell.studies.trials:study", "What does another trial bring? Score against 1, 2, … trials."),
    "aggregation": ("foretell.studies.aggregation:study", "How to combine trials: rules against the logit mean."),
    "calibration": (
        "foretell.studies.calibration:study",
        "What does calibration bring, in-sample, left out, and from the past alone?",
    ),
    "buildup": (
        "foretell.studies.buildup:study",
        "Which part brings what: components one at a time, and a factorial.",
    ),
    "variance": (
        "foretell.studies.variance:study",
        "Where does the spread of scores come from: question, method, chance?",
    ),
    "models": (
        "foretell.studies.base_models:study",
        "Base models side by side, by the paper's protocol and by an honest one.",
    ),
    "stability": (
        "foretell.studies.trees.stability:study",
        "How much of the error is bias, how much chance between runs?",
    ),
    "threshold": (
        "foretell.studies.trees.thresholds:study",
        "Where to cut a probability into True and False, and what tuning the cut is worth.",
    ),
    "consensus": (
        "foretell.studies.trees.consensus:study",
        "Who is right where others are wrong (McNemar), and who says the same?",
    ),
    "frontier": (
        "foretell.studies.trees.frontier:study",
        "What does a right answer cost, in dollars and in time?",
    ),
    "tree-noise": (
        "foretell.studies.trees.noise:study",
        "What does noise in the leaves of a tree do to its answer, rule by rule?",
    ),
    "tree-weights": (
        "foretell.studies.trees.weights:study",
        "What are the weights of a tree worth against means and random weights?",
    ),
    "tree-scale": ("foretell.studies.trees.scale:study", "Does taking a claim apart further help?"),
    "tree-roles": (
        "foretell.studies.trees.roles:study",
        "Which part deserves the better model: analyzer, grounder or synthesizer?",
    ),
}
SIMULATED = frozenset(
    {"stability", "threshold", "consensus", "frontier", "tree-noise", "tree-weights", "tree-scale", "tree-roles"}
)
"""Those that play in a made-up world where no tables are given."""


def require_study(name: str, others: Iterable[str] = ()) -> None:
    """Refuse a name that is no study's; one of `others` may be meant."""
    if name not in STUDIES:
        near = get_close_matches(name, [*STUDIES, *others], n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(STUDIES)}"
        raise InputError(f"no study is called {name!r}", hint=hint)


def run_study(name: str, material: "StudyInput") -> "StudyResult":
    """The study of that name."""
    require_study(name)
    module, function = STUDIES[name][0].split(":")
    return getattr(import_module(module), function)(material)
