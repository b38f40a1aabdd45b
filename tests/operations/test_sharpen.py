import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foretell
from foretell.cli.main import cli
from foretell.questions.errors import InputError, NoAnswer
from foretell.runs.settings import Settings

TYPED = "Will Norway join the European Union soon?"
PROPOSAL: dict[str, Any] = {
    "text": "Will Norway be a member of the European Union on or before 31 December 2090?",
    "deadline": "2090-12-31",
    "decides": "The list of member states that the European Union publishes",
    "no_means": "Norway is not on that list at the end of that day.",
    "edge_cases": ["A treaty that is not in force does not count."],
    "base_rate_class": "Applications for membership since 1993",
}
PLAIN = {"options.variant": "zero-shot", "combine": "mean"}


class Model:
    """Proposes a wording and answers questions; remembers its prompts."""

    def __init__(self, **proposal: Any) -> None:
        self.prompts: list[str] = []
        self.proposal = {**PROPOSAL, **proposal}

    def __call__(self, prompt: str) -> dict[str, Any]:
        self.prompts.append(prompt)
        if "base_rate_class" in prompt:
            return self.proposal
        return {"reason": "It is far away.", "probability": 0.3}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, network=False)


def test_a_proposed_wording_is_shown_and_nothing_is_asked(settings: Settings):
    model = Model()
    proposal = foretell.ask(TYPED, model=model, sharpen="propose", set=PLAIN, settings=settings)
    assert proposal.sharpening.text == PROPOSAL["text"]
    assert "it names no deadline" in proposal.problems
    assert len(model.prompts) == 1
    assert foretell.list_runs(settings=settings).total == 0
    words = shlex.split(proposal.command_line)
    assert words[:3] == ["foretell", "ask", PROPOSAL["text"]]
    assert words[words.index("--closes") + 1] == "2090-12-31"
    assert PROPOSAL["decides"] in words[words.index("--criteria") + 1]
    assert proposal.command_line in str(proposal)
    assert proposal.to_dict()["sharpening"]["original"] == TYPED


def test_an_accepted_wording_is_asked_and_remembers_what_was_typed(settings: Settings):
    model = Model()
    answer = foretell.ask(TYPED, model=model, sharpen="accept", set=PLAIN, settings=settings)
    assert isinstance(answer, foretell.types.AskResult)
    assert answer.question.text == PROPOSAL["text"]
    assert TYPED in answer.question.background
    assert PROPOSAL["edge_cases"][0] in model.prompts[1]
    assert answer.to_dict()["sharpening"]["original"] == TYPED
    assert not any("cannot be resolved" in note for note in answer.notes)
    plain = foretell.ask(TYPED, model=Model(), set=PLAIN, settings=settings)
    assert any("cannot be resolved as it stands: it names no deadline" in note for note in plain.notes)


def test_a_question_without_a_usable_proposal_is_not_asked(settings: Settings):
    model = Model(text="Will Sweden join by 31 December 2090?")
    with pytest.raises(NoAnswer, match="no longer says Norway"):
        foretell.ask(TYPED, model=model, sharpen="accept", set=PLAIN, settings=settings)
    assert foretell.list_runs(settings=settings).total == 0


def test_a_wording_needs_a_model(settings: Settings):
    with pytest.raises(InputError, match="sharpen: has no effect without"):
        foretell.ask(TYPED, model="none", sharpen="accept", settings=settings)


def test_the_command_notes_what_is_missing(tmp_path: Path):
    (tmp_path / "settings.toml").write_text("network = false\n")
    environment = {"FORETELL_HOME": str(tmp_path), "FORETELL_MODEL": ""}
    done = CliRunner().invoke(cli, ["ask", TYPED, "--json"], env=environment)
    assert done.exit_code == 0, done.output
    note = "The question cannot be resolved as it stands: it names no deadline"
    assert note in done.stderr
    assert any(note in text for text in json.loads(done.stdout)["notes"])
    clear = CliRunner().invoke(cli, ["ask", "Will Norway join the EU before 1 May 2091?"], env=environment)
    assert "cannot be resolved" not in clear.output
