"""A study is one function with a class of options. The command line and Python find it by name."""

import json
from inspect import signature

import pytest
from click.testing import CliRunner

import foretell
from foretell import plugins
from foretell.cli.main import cli
from foretell.questions.errors import InputError
from foretell.report.study import column, count
from foretell.report.study import table as made_table
from foretell.report.study_result import StudyResult
from foretell.request import setting
from foretell.studies.inputs import DataInputs, StudyOptions, TableOptions, load_study, study_questions

TWELVE = [
    "trials",
    "calibration",
    "ensemble",
    "ablation",
    "variance",
    "decisions",
    "tree-noise",
    "trajectories",
    "intervention",
    "consistency",
    "reasoning",
    "memorization",
]


class CoinOptions(StudyOptions):
    """How often a coin is thrown."""

    throws: int = setting(3, "How often.", ge=1)


def coin(inputs: DataInputs, options: CoinOptions) -> StudyResult:
    """How often does a coin show heads?

    The coin is simulated.
    """
    table = made_table("Throws", "", [count("n")], {"coin": [options.throws]})
    return StudyResult(name="coin", title="Coins", sentences=("Half of them.",), tables=(table,), passed=False)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plugins, "_REGISTERED", dict(plugins._REGISTERED))
    plugins.register("studies", "coin", coin)


@pytest.mark.usefixtures("registered")
def test_a_function_is_a_study_everywhere():
    assert study_questions()["coin"] == "How often does a coin show heads?"
    assert "coin" in CliRunner().invoke(cli, ["study"]).output
    help_text = CliRunner().invoke(cli, ["study", "coin", "--help"]).output
    assert "The coin is simulated." in help_text
    assert "--throws" in help_text
    result = CliRunner().invoke(cli, ["study", "coin", "--throws", "5", "--json"])
    assert result.exit_code == 1, "an exam that was not passed"
    assert json.loads(result.stdout)["tables"][0]["rows"] == [{"name": "coin", "n": 5}]
    assert foretell.study("coin", options={"throws": 4}).table("Throws").numbers("n") == {"coin": 4}
    assert foretell.study(coin).text == "Half of them."
    assert foretell.study(lambda inputs: coin(inputs, CoinOptions(throws=2))).text == "Half of them."
    with pytest.raises(InputError, match="throws"):
        foretell.study("coin", options={"throws": 0})


def test_every_option_of_a_built_in_study_is_a_parameter():
    offered = set(signature(foretell.study).parameters) - {"name", "inputs", "options", "progress", "settings"}
    assert {field for name in TWELVE for field in load_study(name).options.model_fields} == offered
    with pytest.raises(InputError, match="field worlds: there is no such option"):
        foretell.study("trials", worlds=3)
    with pytest.raises(TypeError, match="'sektion'; did you mean 'section'"):
        foretell.study("trials", sektion="rules")  # pyright: ignore[reportCallIssue]


def test_every_built_in_study_has_a_question_and_its_own_name():
    questions = study_questions()
    assert [name for name in questions if name in plugins.BUILT_IN["studies"]] == TWELVE
    for name, question in questions.items():
        study = load_study(name)
        assert study.question == question
        assert 0 < len(question) <= 57, "one line of 80 characters"
        assert issubclass(study.options, StudyOptions)


def test_every_study_is_a_command():
    for name in study_questions():
        assert CliRunner().invoke(cli, ["study", name, "--help"]).exit_code == 0, name


def test_studies_of_forecasts_share_one_block_of_input_options():
    shared = set(TableOptions.model_fields)
    of_tables = [name for name in TWELVE if issubclass(load_study(name).options, TableOptions)]
    assert of_tables == ["trials", "calibration", "ensemble", "ablation", "variance", "decisions"]
    own = {name: set(load_study(name).options.model_fields) - shared for name in of_tables}
    assert own.pop("calibration") == {"section", "methods"}
    assert own.pop("decisions") == {"section", "reference", "cross"}
    assert set(map(frozenset, own.values())) == {frozenset({"section"})}


def test_a_table_has_a_value_for_every_column():
    columns = [column("a"), column("b")]
    table = made_table("t", "", columns, {"x": [1, 2], "y": [None, None]})
    assert [row.values for row in table.rows] == [(1, 2), (None, None)]
    assert table.numbers("b") == {"x": 2.0}
    with pytest.raises(ValueError, match="for 2 columns"):
        made_table("t", "", columns, {"x": [1]})
