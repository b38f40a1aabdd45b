"""The page on scores: its examples come out as written, and it explains every metric by name."""

import doctest
from pathlib import Path

from foretell.metrics import METRICS

PAGE = Path(__file__).parents[1] / "docs" / "scoring.md"


def test_every_example_comes_out_as_written():
    testfile = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert testfile.attempted > 20
    assert testfile.failed == 0


def test_every_metric_is_explained():
    text = PAGE.read_text(encoding="utf-8")
    # Metrics of other packages stay in the table once they were looked for.
    own = [name for name in METRICS if not name.startswith("example_")]
    assert [name for name in own if f"**`{name}`**" not in text] == []
