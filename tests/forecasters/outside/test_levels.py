import numpy as np

from foretell.forecasters.base_rates.outside_model import MEMORY, basis, likeness, on_grid


def test_the_basis_reproduces_the_covariance() -> None:
    days = on_grid(np.array(["2025-01-05", "2025-01-19", "2025-06-01"], "M8[D]"))
    found = basis(days)
    np.testing.assert_allclose(found.root @ found.root.T, likeness(found.grid, found.grid), atol=1e-8)


def test_weights_give_back_the_levels_on_the_grid_and_fade_away_from_it() -> None:
    found = basis(np.array([0, 14, 28, 400]))
    normals = np.array([1.0, -0.5, 0.3, 2.0])
    levels = found.root @ normals
    weights = found.weights(normals)
    np.testing.assert_allclose(likeness(found.grid, found.grid) @ weights, levels, atol=1e-6)
    after = likeness(np.array([400 + int(MEMORY), 5000]), found.grid) @ weights
    np.testing.assert_allclose(after, [levels[-1] / np.e, 0.0], atol=0.02)


def test_days_of_two_weeks_share_a_level() -> None:
    assert len(set(on_grid(np.arange("1970-01-01", "1970-01-15", dtype="M8[D]")).tolist())) == 1
