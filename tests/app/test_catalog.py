from pathlib import Path

import pytest

from foretell.data.datasets.demo import DEMO
from foretell.forecasters.forecaster import build_forecaster, make_forecaster
from foretell.plugins import BUILT_IN
from foretell.questions.errors import InputError
from foretell.runs.question_sets import open_benchmark

TREE = Path(__file__).parents[2] / "examples" / "trees" / "nvda.json"
NEEDED = {"tree-file": {"file": str(TREE)}}


@pytest.mark.parametrize("name", BUILT_IN["forecasters"])
def test_every_name_in_the_table_builds(name: str):
    assert make_forecaster(name, NEEDED.get(name, {}))


def test_options_are_read_and_checked():
    assert build_forecaster("constant:p=0.25").name == "always 0.25"
    for spec, word in {
        "constnat": "did you mean 'constant'",
        "constant:q=1": "known: p",
        "constant:p": "cannot use",
        "constant:p=7": "outside",
        "tree-file": "a folder or a file",
        "tree": "asks a model (write a spec with forecaster: tree",
        "thoughts": "foretell run",
    }.items():
        with pytest.raises(InputError) as error:
            build_forecaster(spec)
        assert word in str(error.value)


def test_demo_has_enough_questions_and_its_rounds_do_not_overlap():
    pytest.importorskip("statsmodels")
    benchmark = open_benchmark("demo")
    assert len(benchmark.questions.questions) >= 400
    assert {q.source for q in benchmark.questions.questions} == set(DEMO)
    assert all(every_days > max(horizons) for every_days, horizons in DEMO.values())
    outcomes = benchmark.questions.outcomes()
    assert 0.3 < sum(outcomes.values()) / len(outcomes) < 0.7


def test_errors_for_unknown_sets_list_known_ones(tmp_path):
    with pytest.raises(InputError, match="demo, forecastbench"):
        open_benchmark("no-such-thing")
    with pytest.raises(InputError, match="foretell data pull"):
        open_benchmark("forecastbench", folder=tmp_path)
