"""Judging again: claims with a judged link that something beneath has changed under, from the leaves up, on demand."""

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.arithmetic.evaluation import stale_claims
from foretell.forecasters.tree.edits import SetLink, SetReport
from foretell.forecasters.tree.grow.prompting import StructuredClient, TreeQuestion, surroundings_of
from foretell.forecasters.tree.grow.rules import VANILLA
from foretell.forecasters.tree.grow.synthesize import Synthesizer, SynthesizeSettings
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Tree, parents_of, pre_order
from foretell.forecasters.tree.what_if import resynthesize
from foretell.questions.question import Question, Target


async def rejudge(
    tree: Tree, context: Context, *, question: Question | None = None, attempts: int = 3
) -> tuple[Tree, tuple[str, ...]]:
    """The tree with every stale judgement made anew, and the claims for which that failed: their old number stands.

    A claim is judged after those beneath it, and once. `question` is the one the tree was grown for; a tree file does
    not hold it, and without it the root's claim stands for the question.
    """
    root = tree.nodes[tree.root].claim
    question = question or Question(
        id=f"claim {root}", source="own", text=root, due=context.as_of.at, targets=(Target(id="yes"),), subtype="claim"
    )
    synthesizer = Synthesizer(
        client=StructuredClient(
            context=context, slot=f"{question.id}/trial {context.trial}/rejudge", attempts=attempts
        ),
        tree_question=TreeQuestion(question=question, as_of=context.as_of, target=question.targets[0].id),
        settings=SynthesizeSettings(rule=VANILLA, intercept_limit=tree.intercept_limit, missing=tree.missing),
    )
    failed: list[str] = []
    done: set[str] = set()
    while waiting := [id for id in stale_claims(tree) if id not in done]:
        id = waiting[0]
        done.add(id)
        place = surroundings_of(tree.nodes, parents_of(tree.nodes), id)
        below = {other: tree.nodes[other] for other in pre_order(tree.nodes, id) if other != id}
        result = await synthesizer.synthesize(tree.nodes[id], place, below)
        if not isinstance(result.link, JudgedLink):
            failed.append(id)
            continue
        report = SetReport(id=id, report=result.report, key_factor=result.key_factor)
        tree = resynthesize(tree, [SetLink(id=id, link=result.link), report])
    return tree, tuple(failed)
