"""`foretell calibrate`: fit, apply and refuse; and the examples in the docs."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.studies.made_trials import grown, made, write_long

from foretell.cli.commands import operation_command
from foretell.operations.requests.scoring import CALIBRATION_METHODS
from foretell.questions.errors import InputError

calibrate = operation_command("calibrate")

DOCS = Path(__file__).parents[2] / "docs"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(calibrate, [str(a) for a in arguments])


@pytest.fixture
def rounds(tmp_path: Path) -> tuple[Path, Path, Path, Path]:
    """Four early rounds to fit on and one late round to apply to: forecasts and outcomes of each."""
    examples = grown(made(rounds=5, size=24), 2.0)
    late = examples.rows.due == examples.rows.due.max()
    early = examples.take(examples.known_on < examples.rows.due.max())
    (tmp_path / "early").mkdir()
    (tmp_path / "late").mkdir()
    past = write_long({"bot": early}, tmp_path / "early")
    return (*past, *write_long({"bot": examples.take(late)}, tmp_path / "late"))


@pytest.mark.parametrize("method", CALIBRATION_METHODS)
def test_fit_then_apply_to_a_later_round(method: str, rounds, tmp_path: Path):
    f, o, new_f, new_o = rounds
    rule, out = tmp_path / "rule.json", tmp_path / "out.csv"
    fitted = run("fit", "-f", f, "-o", o, "--method", method, "--out", rule)
    assert fitted.exit_code == 0, fitted.output
    assert "It answers questions asked after" in fitted.output
    assert json.loads(rule.read_text())["schema"] == "foretell/fitted/1"
    applied = run("apply", rule, "-f", new_f, "-o", new_o, "--out", out)
    assert applied.exit_code == 0, applied.output
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 36
    assert {row["forecaster"] for row in rows} == {"bot, calibrated"}
    assert all(0 <= float(row["p"]) <= 1 for row in rows)


@pytest.mark.parametrize("method", ["greedy", "skill", "equal"])
def test_an_ensemble_is_fitted_and_applied(method: str, tmp_path: Path):
    good, bad = grown(made(rounds=5, size=24), 1.0), grown(made(rounds=5, size=24), 4.0)
    last = good.rows.due.max()
    (tmp_path / "early").mkdir()
    (tmp_path / "late").mkdir()
    members = {"good": good, "bad": bad}
    early = write_long({name: rows.take(rows.known_on < last) for name, rows in members.items()}, tmp_path / "early")
    late = write_long({name: rows.take(rows.rows.due == last) for name, rows in members.items()}, tmp_path / "late")
    rule, out = tmp_path / "rule.json", tmp_path / "out.csv"
    fitted = run("fit", "-f", early[0], "-o", early[1], "--method", method, "--out", rule)
    assert fitted.exit_code == 0, (fitted.output, fitted.exception)
    assert sum(json.loads(rule.read_text())["parameters"]["weights"]) == pytest.approx(1)
    applied = run("apply", rule, "-f", late[0], "-o", late[1], "--out", out)
    assert applied.exit_code == 0, (applied.output, applied.exception)
    with out.open() as file:
        assert {row["forecaster"] for row in csv.DictReader(file)} == {"ensemble"}
    if method != "equal":
        again = run("apply", rule, "-f", early[0], "-o", early[1], "--out", out)
        assert "must not judge these forecasts" in str(again.exception)


def test_what_was_applied_can_be_scored(rounds, tmp_path: Path):
    from foretell import score

    f, o, new_f, new_o = rounds
    run("fit", "-f", f, "-o", o, "--method", "platt", "--out", tmp_path / "rule.json")
    run("apply", tmp_path / "rule.json", "-f", new_f, "-o", new_o, "--out", tmp_path / "out.csv")
    board = score(tmp_path / "out.csv", new_o, baselines=False)
    assert board.scores[0].forecaster == "bot, calibrated"
    assert board.scores[0].completion == 1


def test_a_rule_refuses_what_it_was_fitted_on(rounds, tmp_path: Path):
    f, o, *_ = rounds
    run("fit", "-f", f, "-o", o, "--out", tmp_path / "rule.json")
    for more in ([], ["--allow-overlap"]):
        result = run("apply", tmp_path / "rule.json", "-f", f, "-o", o, "--out", tmp_path / "x.csv", *more)
        assert isinstance(result.exception, InputError)
        assert "must not judge these forecasts" in str(result.exception)
        assert "dated questions it was fitted on" in str(result.exception)
    assert not (tmp_path / "x.csv").exists()


def test_a_rule_refuses_questions_from_before_its_training_ended(rounds, tmp_path: Path):
    f, o, new_f, new_o = rounds
    run("fit", "-f", new_f, "-o", new_o, "--out", tmp_path / "rule.json", "--method", "platt")
    rule, keep = tmp_path / "rule.json", tmp_path / "early.csv"
    lines = [line for line in f.read_text().splitlines() if ",again," not in line]
    keep.write_text("\n".join(lines) + "\n")
    result = run("apply", rule, "-f", keep, "-o", o, "--out", tmp_path / "x.csv")
    assert isinstance(result.exception, InputError)
    assert "was asked before" in str(result.exception)
    assert run("apply", rule, "-f", keep, "-o", o, "--out", tmp_path / "x.csv", "--allow-overlap").exit_code == 0


def test_apply_needs_no_outcomes_where_forecasts_carry_the_columns(rounds, tmp_path: Path):
    f, o, new_f, _ = rounds
    run("fit", "-f", f, "-o", o, "--method", "hierarchical", "--out", tmp_path / "rule.json")
    with new_f.open() as file:
        rows = list(csv.DictReader(file))
    wide = tmp_path / "wide.jsonl"
    wide.write_text("".join(json.dumps({**row, "source": "fred"}) + "\n" for row in rows))
    out = tmp_path / "out.jsonl"
    assert run("apply", tmp_path / "rule.json", "-f", wide, "--out", out).exit_code == 0
    assert len(out.read_text().splitlines()) == len({(r["question"], r["target"]) for r in rows})


def test_a_single_outcome_class_gives_a_note(rounds, tmp_path: Path):
    f, o, *_ = rounds
    with o.open() as file:
        rows = list(csv.DictReader(file))
    with o.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "outcome": 0} for row in rows)
    result = run("fit", "-f", f, "-o", o, "--method", "platt", "--out", tmp_path / "rule.json")
    assert result.exit_code == 0
    assert "All outcomes were the same" in result.output
    assert json.loads((tmp_path / "rule.json").read_text())["parameters"]["slope"] == 1


def test_missing_dates_are_an_error(rounds, tmp_path: Path):
    f, o, *_ = rounds
    o.write_text(o.read_text().replace("resolved_on", "closed"))
    result = run("fit", "-f", f, "-o", o, "--out", tmp_path / "rule.json")
    assert isinstance(result.exception, InputError)
    assert "column resolved_on" in str(result.exception)


def test_settings_of_a_method_are_checked(rounds):
    f, o, *_ = rounds
    arguments = ("fit", "-f", f, "-o", o, "--method")
    for more, problem in {
        ("greedy", "--set", "stepz=3"): "--set: greedy has no setting 'stepz' (did you mean steps?)",
        ("greedy", "--set", "steps=0"): "--set steps: must be at least 1",
        ("platt", "--set", "steps=3"): "--set: platt has no setting 'steps' (leave it out)",
        ("plat",): "--method: there is no method 'plat' (did you mean platt?)",
        ("equal", "--forecaster", "bot"): "--forecaster: has no effect on an ensemble",
    }.items():
        assert problem in str(run(*arguments, *more).exception)


def test_forecasts_of_unknown_targets_are_left_out_and_counted(rounds, tmp_path: Path):
    f, o, *_ = rounds
    lines = f.read_text().splitlines()
    extra = lines[1].split(",")
    extra[lines[0].split(",").index("question")] = "elsewhere"
    f.write_text("\n".join([*lines, ",".join(extra)]) + "\n")
    assert "do not mention the target: 1 forecast." in run("fit", "-f", f, "-o", o).output
