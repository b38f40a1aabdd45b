"""The trees that the trials of a run have grown: from their events, and the names of their files."""

from collections.abc import Iterable
from contextlib import suppress

from foretell.data.untrusted import for_file_name
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import tree_from_dict
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.questions.trace import TraceEvent, TreeGrown


@frozen
class GrownTree:
    """A tree that a trial of a run has grown."""

    trial: int
    target: str
    """The target that it is about."""
    tree: Tree

    def name(self, run: str, question: str, *, typed: bool) -> str:
        """Return the name of its file in the home, without suffix. A typed question has one tree in one file."""
        return run if typed else f"{run}/{tree_file_name(question, self.target, self.trial)}"


def tree_file_name(question: str, target: str, trial: int) -> str:
    """Return the name of the file of a tree within the folder of its run, without suffix."""
    return f"{for_file_name(question)}-{for_file_name(target)}-{trial}"


def grown_trees(events: Iterable[tuple[int, TraceEvent]]) -> list[GrownTree]:
    """Return the trees that the trials of a question have grown, from their events with the number of the trial.

    Trees that this version cannot read are left out.
    """
    documents = {(trial, event.tree): event.document for trial, event in events if isinstance(event, TreeGrown)}
    trees: list[GrownTree] = []
    for (trial, target), document in sorted(documents.items()):
        with suppress(InputError):
            trees.append(GrownTree(trial=trial, target=target, tree=evaluated(tree_from_dict(document).tree)))
    return trees
