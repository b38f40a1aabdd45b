import numpy as np

from foretell.forecasters.base_rates.outside_model import MEMORY, basis, on_grid, similarity


def test_basis_reproduces_the_covariance() -> None:
    days = on_grid(np.array(["2025-01-05", "2025-01-19", "2025-06-01"], "M8[D]"))
    drift_basis = basis(days)
    np.testing.assert_allclose(
        drift_basis.root @ drift_basis.root.T, similarity(drift_basis.grid, drift_basis.grid), atol=1e-8
    )


def test_weights_reproduce_levels_on_the_grid_and_decay_away_from_it() -> None:
    drift_basis = basis(np.array([0, 14, 28, 400]))
    normals = np.array([1.0, -0.5, 0.3, 2.0])
    levels = drift_basis.root @ normals
    weights = drift_basis.weights(normals)
    np.testing.assert_allclose(similarity(drift_basis.grid, drift_basis.grid) @ weights, levels, atol=1e-6)
    after = similarity(np.array([400 + int(MEMORY), 5000]), drift_basis.grid) @ weights
    np.testing.assert_allclose(after, [levels[-1] / np.e, 0.0], atol=0.02)


def test_days_of_one_grid_interval_share_a_level() -> None:
    assert len(set(on_grid(np.arange("1970-01-01", "1970-01-15", dtype="M8[D]")).tolist())) == 1
