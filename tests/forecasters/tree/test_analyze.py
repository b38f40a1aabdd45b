"""The analyzer: which children are accepted, requested again, or left out with a note."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.scripted_tree import TreeSetup, playing

from foretell.forecasters.tree.grow.analyze import AnalysisDraft, AnalysisLimits, depth_of
from foretell.forecasters.tree.grow.analyze import analyze as analyze_claim
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.validation import structural_problems
from foretell.models.model import ModelError, Request
from foretell.models.providers.scripted import ScriptedModel

ROOT = Proposition(id="P0", claim="The harbour bridge opens to traffic by 31 December 2025.")
CLAIMS = [
    "The repair of the harbour bridge is finished by 30 November 2025.",
    "The port authority of Oslo signs the permit for the harbour bridge in 2025.",
    "A strike of the harbour workers of Oslo lasts into December 2025.",
    "The budget of Oslo for 2025 pays for the last steel girders.",
]


def answer(*expansions: tuple[str, list[str] | list[tuple[str, str]]], complete: bool = False) -> str:
    return json.dumps(
        {
            "plan": "so",
            "expansions": [
                {
                    "parent": parent,
                    "causality": f"they bear on {parent}",
                    "children": [
                        {"claim": child} if isinstance(child, str) else {"id": child[0], "claim": child[1]}
                        for child in children
                    ],
                }
                for parent, children in expansions
            ],
            "complete": complete,
        }
    )


def analyze(
    script: Any, limits: AnalysisLimits | None = None, place: ClaimSurroundings | None = None, **settings: Any
) -> tuple[AnalysisDraft, TreeSetup]:
    setup = TreeSetup(model=ScriptedModel(script))
    draft = AnalysisDraft(ROOT, place or ClaimSurroundings(), limits or AnalysisLimits())
    asyncio.run(analyze_claim(setup.tree_question, setup.context, TreeSettings(**settings), draft))
    return draft, setup


def test_children_get_new_ids_and_analysis_ends_when_complete():
    script = [
        answer(("P0", CLAIMS[:2])),
        answer(("P1", CLAIMS[2:]), complete=True),
    ]
    draft, setup = analyze(script)
    assert draft.nodes["P0"].children == ("P1", "P2")
    assert draft.nodes["P1"].children == ("P1.1", "P1.2")
    assert draft.nodes["P0"].causality == "they bear on P0"
    assert draft.leaves == ("P2", "P1.1", "P1.2")
    assert len(setup.requests) == 2


def test_the_models_ids_are_valid_only_within_one_answer():
    script = [answer(("P0", [("P7", CLAIMS[0]), ("x", CLAIMS[1])]), ("P7", CLAIMS[2:]), complete=True)]
    draft, _ = analyze(script)
    assert set(draft.nodes) == {"P0", "P1", "P2", "P1.1", "P1.2"}
    assert draft.nodes["P1.1"].claim == CLAIMS[2]


def test_one_answer_can_expand_several_parents():
    more = ["Steel prices in Norway fall below 600 euros a ton in 2025.", "The girders from Gdansk arrive by May 2025."]
    script = [
        answer(("P0", CLAIMS[:2])),
        answer(("P1", CLAIMS[2:]), ("P2", more), complete=True),
    ]
    draft, _ = analyze(script)
    assert draft.nodes["P2"].children == ("P2.1", "P2.2")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("It is finished by 30 November 2025.", '"It"'),
        ("The repair ends next month with all girders in place.", '"next month"'),
        ("Will the repair be finished by 30 November 2025?", "question"),
        ("What P1.2 says is true by 30 November 2025.", "id"),
        (ROOT.claim, "repeats a claim above it"),
        ("The harbour bridge does not open to traffic by 31 December 2025.", "opposite"),
        (CLAIMS[1], "repeats one beside it"),
        ("Paid.", "too short"),
    ],
)
def test_claims_that_are_not_self_contained_are_requested_again_with_the_reason(claim: str, reason: str):
    script = [answer(("P0", [CLAIMS[1], claim])), answer(("P0", CLAIMS[:2]), complete=True)]
    draft, setup = analyze(script)
    assert reason in setup.requests[1].messages[-1].text
    assert draft.nodes["P0"].children == ("P1", "P2")


def test_a_claim_of_another_branch_is_shared_instead_of_duplicated():
    script = [
        answer(("P0", CLAIMS[:2])),
        answer(("P1", [CLAIMS[2], CLAIMS[3]]), ("P2", [CLAIMS[2], "Oslo elects a new mayor in 2025."]), complete=True),
    ]
    draft, _ = analyze(script)
    assert draft.nodes["P2"].children == ("P1.1", "P2.1")
    assert any("one claim with several parents" in note for note in draft.notes)


def test_the_leaf_limit_is_checked_after_every_answer():
    eight = [f"The girder number {n} of the harbour bridge is set in {2000 + n}." for n in range(1, 9)]
    script = [answer(("P0", eight[:5])), answer(("P1", eight[5:])), "never asked for"]
    draft, setup = analyze(script, AnalysisLimits(leaves=6))
    assert len(draft.leaves) == 7
    assert len(setup.requests) == 2


def test_expansions_beyond_the_leaf_limit_are_left_out_with_a_note():
    eight = [f"The girder number {n} of the harbour bridge is set in {2000 + n}." for n in range(1, 9)]
    script = [answer(("P0", [("a", eight[0]), ("b", eight[1]), ("c", eight[2])]), ("a", eight[3:5]), ("b", eight[5:]))]
    draft, _ = analyze(script, AnalysisLimits(leaves=4))
    assert len(draft.leaves) == 4
    assert "no room was left for 3 more children of P2" in draft.notes


def test_the_node_limit_is_respected():
    script = [answer(("P0", CLAIMS[:2])), answer(("P1", CLAIMS[2:]), complete=True)]
    draft, _ = analyze(script, AnalysisLimits(nodes=3))
    assert len(draft.nodes) == 3


def test_the_depth_limit_is_respected():
    script = [answer(("P0", CLAIMS[:2])), answer(("P1", CLAIMS[2:])), answer(complete=True)]
    draft, setup = analyze(script, AnalysisLimits(depth=1))
    assert "as deep as claims may be" in setup.requests[2].messages[-1].text
    assert draft.leaves == ("P1", "P2")


def test_the_step_limit_ends_the_analysis():
    script = [answer(("P0", CLAIMS[:2])), answer(("P1", CLAIMS[2:]))]
    draft, setup = analyze(script, steps=1)
    assert len(setup.requests) == 1
    assert draft.leaves == ("P1", "P2")


def test_a_claim_may_stay_a_leaf():
    draft, _ = analyze([answer(complete=True)])
    assert draft.leaves == ("P0",)


def test_unusable_answers_leave_a_leaf_and_a_note():
    draft, setup = analyze(["no json", "still none", "nor here"])
    assert draft.leaves == ("P0",)
    assert len(setup.requests) == 3
    assert "ended early" in draft.notes[0]


def test_the_usable_part_of_the_last_answer_is_applied():
    bad = answer(("P0", [*CLAIMS[:2], "It is so."]))
    draft, _ = analyze([bad, bad, bad, answer(complete=True)])
    assert draft.nodes["P0"].children == ("P1", "P2")
    assert "left out" in draft.notes[0]


def test_a_model_error_keeps_the_claims_added_so_far():
    draft, _ = analyze([answer(("P0", CLAIMS[:2])), ModelError("down")])
    assert draft.leaves == ("P1", "P2")
    assert "down" in draft.notes[0]


def test_similar_claims_are_noted_and_correlations_are_judged_on_request():
    near = "The repair of the harbour bridge is finished by 15 November 2025."
    pairs = {"pairs": [{"a": "P3", "b": "P1", "correlation": 0.9, "reason": "same crew"}]}
    draft, setup = analyze(
        [answer(("P0", [CLAIMS[0], CLAIMS[1], near]), complete=True), json.dumps(pairs)], correlations=True
    )
    assert draft.notes[0].startswith("P1 and P3 are worded alike")
    assert draft.notes[1] == "P1 and P3 are judged to move together (correlation +0.9): same crew"
    assert setup.requests[1].slot == "slot/P0/correlation/0"


def test_the_prompt_contains_the_question_the_surroundings_and_the_rule():
    place = ClaimSurroundings(path=("The whole works.",), siblings=("A sibling claim.",))
    _, setup = analyze([answer(complete=True)], place=place, rule="logic")
    system, user = (message.text for message in setup.requests[0].messages)
    assert "formula with AND, OR and NOT" in system
    assert "2025-10-26" in system
    for words in ("port authority", "closed in June", "The whole works.", "A sibling claim.", ROOT.claim):
        assert words in user


def test_the_length_of_the_surroundings_in_the_prompt_is_bounded():
    place = ClaimSurroundings(
        path=tuple(f"Claim {n}." for n in range(1000)), siblings=tuple(f"Sibling {n}." for n in range(1000))
    )
    _, setup = analyze([answer(complete=True)], place=place)
    assert len(setup.requests[0].messages[1].text) < 3000


def test_a_clumsy_model_corrects_its_claims():
    setup = TreeSetup(model=playing(), name="scripted:clumsy")
    draft = AnalysisDraft(ROOT, ClaimSurroundings(), AnalysisLimits())
    asyncio.run(analyze_claim(setup.tree_question, setup.context, TreeSettings(), draft))
    assert len(draft.leaves) == 4
    assert sum("could not be used" in request.messages[-1].text for request in setup.requests) == 2


def test_two_analyses_make_the_same_requests():
    def keys(requests: list[Request]) -> list[str]:
        return [request.slot for request in requests]

    runs = [analyze([answer(("P0", CLAIMS[:2])), answer(("P1", CLAIMS[2:]), complete=True)])[1] for _ in range(2)]
    assert runs[0].requests == runs[1].requests
    assert keys(runs[0].requests) == ["slot/P0/analysis 1/0", "slot/P0/analysis 2/0"]


WORDS = [f"The girder number {n} of the harbour bridge is set in {2000 + n}." for n in range(12)]
NAMES = st.sampled_from(["P0", "P1", "P2", "P1.1", "P3", "a", "b", "c", "", "P0 "])
EXPANSIONS = st.lists(
    st.fixed_dictionaries(
        {
            "parent": NAMES,
            "causality": st.just("so"),
            "children": st.lists(
                st.fixed_dictionaries({"id": NAMES, "claim": st.sampled_from([*WORDS, ROOT.claim, "It."])}),
                min_size=1,
                max_size=6,
            ),
        }
    ),
    max_size=4,
)


@settings(max_examples=150)
@given(st.lists(EXPANSIONS, min_size=1, max_size=4), st.integers(2, 12), st.none() | st.integers(2, 12))
def test_any_additions_leave_a_valid_tree(answers: list[Any], leaves: int, nodes: int | None):
    draft = AnalysisDraft(ROOT, ClaimSurroundings(), AnalysisLimits(leaves=leaves, nodes=nodes, depth=4))
    for expansions in answers:
        before = set(draft.nodes)
        additions, _ = draft.read(expansions)
        assert set(draft.nodes) == before, "reading changes nothing"
        draft.apply(additions)
    tree = Tree(root="P0", nodes=draft.nodes)
    assert structural_problems(tree) == []
    claims = [node.claim for node in draft.nodes.values()]
    assert len(set(claims)) == len(claims)
    assert all(len(node.children) != 1 and depth_of(id) <= 4 for id, node in draft.nodes.items())
    assert nodes is None or len(draft.nodes) <= nodes + 1
    assert draft.outline().count("\n") + 1 >= len(draft.nodes)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.fixed_dictionaries({"plan": JSON, "expansions": JSON, "complete": JSON}) | JSON)
def test_any_answer_leaves_the_analysis_valid(value: Any):
    reply = json.dumps(value)
    result, _ = analyze(lambda request: reply)
    assert result.nodes["P0"].claim == ROOT.claim
