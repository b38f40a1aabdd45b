"""The texts of `foretell study leaks`: what is stored, and what the rules make of it beside no filter at all."""

from pathlib import Path

import pytest
from tests.tools.adversarial.measure import BEGIN, END, PAGE, STORED, table

from foretell.operations import study
from foretell.studies.leaks import leak_cases


def test_rules_alone_stop_nine_leaks_in_ten_and_hardly_a_clean_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clean texts in a hundred at most; the study prints it by kind, and the docs say the same."""
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    mute = tmp_path / "mute.jsonl"
    mute.write_text('{"when": "", "text": "I cannot say."}\n', encoding="utf-8")
    result = study("leaks", models=(f"scripted:{mute}",), limit=400)
    assert "gave no clear verdict on" in result.sentences[-1]
    totals = result.table("Stopped, in all")
    judged = {name: str(value).split(" of ") for name, value in totals.column("judged").items()}
    tuned = {name: str(value).split(" of ") for name, value in totals.column("tuned").items()}
    for share in (judged["leaks with a date"], tuned["leaks with a date"]):
        assert int(share[0]) >= 0.9 * int(share[1])
    clean = [judged["clean texts"], tuned["clean texts"]]
    assert sum(int(one[0]) for one in clean) <= 0.02 * sum(int(one[1]) for one in clean)
    assert len(leak_cases()) > 3_000
    assert PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip() == table()


def test_the_stored_texts_are_those_that_the_templates_make() -> None:
    pytest.importorskip("babel", reason="writes dates in many languages")
    from tests.tools.adversarial.cases import all_cases
    from tests.tools.adversarial.dates_written import PROSE

    from foretell.studies.leaks import to_lines

    assert STORED.read_text(encoding="utf-8").splitlines() == list(to_lines(all_cases(), PROSE))
