from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import benjamini_hochberg, holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(p_values)
@settings(max_examples=40)
def test_agrees_with_statsmodels(p):
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    with patch("gc.collect"):  # It collects garbage in every call: half a second where many tests are loaded.
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
        assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])


@given(p_values)
@settings(max_examples=40)
def test_adjusted_values_only_grow_and_keep_their_order(p):
    raw = np.array(p)
    for adjusted in (holm(p), benjamini_hochberg(p)):
        assert (adjusted >= raw - 1e-15).all()
        assert (adjusted <= 1).all()
        assert (np.diff(adjusted[np.argsort(raw)]) >= 0).all()
    assert (benjamini_hochberg(p) <= holm(p) + 1e-15).all()


def test_missing_values_stay_and_do_not_count():
    p = np.array([[0.01, np.nan], [0.04, 0.03]])
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(p)
        assert np.isnan(adjusted[0, 1])
        assert adjusted[[0, 1, 1], [0, 0, 1]] == pytest.approx(adjust([0.01, 0.04, 0.03]))
    assert np.isnan(holm([np.nan])).all()
    assert len(holm([])) == 0


@pytest.mark.parametrize("bad", [[1.2], [-0.1, 0.5]])
def test_values_outside_the_unit_interval_raise(bad):
    with pytest.raises(ValueError, match=r"p\[0\]"):
        holm(bad)
