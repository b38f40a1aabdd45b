"""Saved rules: round trips of every kind, and errors with the file and the field."""

import json
from dataclasses import fields, is_dataclass
from datetime import date
from importlib import import_module

import numpy as np
import pytest

from foretell.forecasters.combine.calibration import FittedIsotonic, FittedPlatt, HierarchicalPlatt, Isotonic
from foretell.forecasters.combine.default import DefaultMethod
from foretell.forecasters.combine.ensemble import Ensemble
from foretell.forecasters.combine.rules import ChainedMethod, FittedChain, FittedRaw, FittedRule, Training
from foretell.forecasters.combine.saving import KINDS, from_json, load, save, to_json
from foretell.forecasters.combine.shrink import FittedShrink, Shrink
from foretell.questions.errors import InputError

TRAINED = Training(
    askings=("a@2025-01-05", "b@2025-01-05"), first_due=date(2025, 1, 5), last_known=date(2025, 2, 1), n=3
)
RULES = [
    FittedRaw(),
    FittedPlatt(slope=1 / 3, intercept=-1e-17, offsets={"é > ü": 0.1}, by=("source", "subtype"), training=TRAINED),
    FittedIsotonic(at=(0.1, 0.2), value=(0.3, 0.4), training=TRAINED),
    FittedChain(stages=(FittedShrink(floor=0.2, slope=1.0), FittedPlatt(slope=2.0)), training=TRAINED),
    FittedChain(stages=(FittedChain(stages=(FittedRaw(),)),)),
]


@pytest.mark.parametrize("rule", RULES)
def test_rules_survive_a_json_round_trip(rule):
    assert from_json(to_json(rule)) == rule


def test_fitted_rules_survive_being_saved_and_loaded(world, tmp_path):
    examples = world(60)
    for method in (ChainedMethod(methods=(Shrink(), HierarchicalPlatt())), Isotonic(), DefaultMethod()):
        fitted = method.fit(examples)
        save(fitted, tmp_path / "deep" / "rule.json")
        again = load(tmp_path / "deep" / "rule.json")
        assert again == fitted
        assert again.training.askings == tuple(sorted({str(a) for a in examples.rows.asking}))
        assert again.probabilities(examples.rows) == pytest.approx(fitted.probabilities(examples.rows))


def test_file_has_schema_kind_parameters_and_training(world):
    document = json.loads(to_json(HierarchicalPlatt().fit(world(30))))
    assert list(document) == ["schema", "kind", "parameters", "training"]
    assert (document["schema"], document["kind"]) == ("foretell/fitted/1", "platt")
    assert list(document["training"]) == ["askings", "first_due", "last_known", "n"]
    assert document["training"]["first_due"] == "2025-01-05"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_frozen_dataclass_with_training_and_probabilities(kind):
    module, name = KINDS[kind].split(":")
    form = getattr(import_module(module), name)
    assert is_dataclass(form)
    assert form.__dataclass_params__.frozen
    assert "training" in {f.name for f in fields(form)}
    assert callable(form.probabilities)


def changed(rule: FittedRule, place: str, value: object) -> str:
    document = json.loads(to_json(rule))
    *inside, last = place.split(".")
    here = document
    for part in inside:
        here = here[int(part)] if isinstance(here, list) else here[part]
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("schema", "foretell/1", "rule.json, field schema: schema is 'foretell/1'"),
        ("kind", "magic", "rule.json, field kind: no rule is of kind 'magic' (the kinds are raw, platt"),
        ("kind", ["platt"], "rule.json, field kind: no rule is of kind ['platt']"),
        ("extra", 1, "rule.json, field extra: a rule has no field 'extra'"),
        ("training", ..., "rule.json, field training: the field 'training' is missing"),
        ("parameters", [], "rule.json, field parameters: expected an object, found []"),
        ("parameters.slopes", 1, "rule.json, field parameters.slopes: FittedPlatt has no field 'slopes'"),
        ("parameters.slope", "1", "rule.json, field parameters.slope: Input should be a valid number, found '1'"),
        ("parameters.slope", True, "rule.json, field parameters.slope: Input should be a valid number, found True"),
        ("parameters.slope", None, "rule.json, field parameters.slope: Input should be a valid number, found None"),
        ("parameters.by", "source", "rule.json, field parameters.by: Input should be a valid array, found 'source'"),
        ("parameters.by", [1], "rule.json, field parameters.by[0]: Input should be a valid string, found 1"),
        ("parameters.offsets", 3, "rule.json, field parameters.offsets: Input should be an object, found 3"),
        (
            "parameters.offsets.fred",
            "x",
            "field parameters.offsets.fred: Input should be a valid number, found 'x'",
        ),
        ("training.n", 1.5, "rule.json, field training.n: Input should be a valid integer"),
        ("training.first_due", "soon", "rule.json, field training.first_due: Input should be a valid date"),
        ("training.first_due", 7, "rule.json, field training.first_due: Input should be a valid date"),
        ("training.ids", [], "rule.json, field training.ids: Unexpected keyword argument, found []"),
    ],
)
def test_invalid_fields_raise_errors_with_file_and_field(place, value, message, tmp_path):
    (tmp_path / "rule.json").write_text(changed(RULES[1], place, value))
    with pytest.raises(InputError) as caught:
        load(tmp_path / "rule.json")
    assert message in str(caught.value)


def test_errors_inside_a_chain_name_the_nested_field():
    with pytest.raises(InputError, match=r"field parameters.stages\[0\].parameters.floor: Input should be"):
        from_json(changed(RULES[3], "parameters.stages.0.parameters.floor", "low"))
    with pytest.raises(InputError, match=r"field parameters.stages\[1\].kind: no rule is of kind 'x'"):
        from_json(changed(RULES[3], "parameters.stages.1.kind", "x"))


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not JSON"), ("[]", "expected the JSON object of a fitted rule, found list"), ('{"schema": NaN}', "NaN")],
)
def test_invalid_documents_raise_errors(text, message):
    with pytest.raises(InputError, match=message):
        from_json(text)


def test_missing_file_raises_an_error_with_its_name(tmp_path):
    with pytest.raises(InputError, match=r"none.json: cannot be read: No such file"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("parameters.weights", [0.5], "2 members have 1 weights"),
        ("parameters.weights", ..., "weights"),
        ("parameters.space", "odds", "parameters.space: Input should be 'logit' or 'probability', found 'odds'"),
    ],
)
def test_values_that_a_rule_rejects_raise_errors_when_loaded(place, value, message):
    with pytest.raises(InputError, match=message):
        from_json(changed(Ensemble(names=("a", "b"), weights=(0.5, 0.5)), place, value))


def test_nested_parts_of_the_default_rule_are_validated(world):
    fitted = DefaultMethod().fit(world(10))
    raw = {"kind": "raw", "parameters": {}, "training": {}}
    with pytest.raises(InputError, match=r"field parameters.market: expected a FittedTrust, found a FittedRaw"):
        from_json(changed(fitted, "parameters.market", raw))
    with pytest.raises(InputError, match=r"field parameters.proofs\[0\].won: Unexpected keyword argument"):
        from_json(changed(fitted, "parameters.proofs.0.won", 1))
    with pytest.raises(InputError, match=r"field parameters.proofs.*, found \[\]"):
        from_json(changed(fitted, "parameters.proofs", []))


def test_values_that_cannot_be_saved_raise_errors():
    with pytest.raises(TypeError, match="Training cannot be stored; the kinds are raw, platt"):
        to_json(TRAINED)
    with pytest.raises(ValueError, match="nan"):
        to_json(FittedPlatt(slope=float("nan")))
    with pytest.raises(TypeError, match="keys must be str"):
        to_json(FittedPlatt(offsets={("fred", "all"): 1.0}))
    with pytest.raises(TypeError, match="ndarray has no JSON form"):
        to_json(FittedIsotonic(at=np.array([1.0])))
