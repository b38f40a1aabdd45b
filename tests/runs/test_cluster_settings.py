from dataclasses import replace
from pathlib import Path

import pytest

from foretell.questions.errors import InputError
from foretell.runs.settings import Settings, load_settings
from foretell.runs.shared_runs import ClusterStatus, settings_for, shared_url
from foretell.runs.store import RunRow, TrialKey
from foretell.runs.trial_queue import QueuedTrial
from foretell.runs.worker import executor_name

HERE = Settings(home=Path("home"), keys={"OPENAI_API_KEY": "k", "FRED_API_KEY": "f"})
ROW = RunRow(id="r", spec={}, created="2026-01-01", services=("openai", "fred"), done=0, failed=0)


def queued(trial: int, status: str, worker: int = 0) -> QueuedTrial:
    key = TrialKey(run="r", question="q", due="2026-01-01", trial=trial)
    return QueuedTrial(key=key, status=status, executor=executor_name(worker) if worker else "")


def test_cluster_status_lists_workers_and_trials():
    trials = [
        queued(0, "PENDING", 7),
        queued(1, "PENDING", 7),
        queued(2, "PENDING", 9),
        queued(3, "ENQUEUED"),
        queued(4, "ENQUEUED", 9),
    ]
    cluster_status = ClusterStatus(workers={7: "one:11", 8: "other:12"}, trials=trials, everywhere=3)
    assert list(cluster_status.lines()) == [
        "worker one:11: 2 trials in progress",
        "worker other:12: 0 trials in progress",
        "1 trials of lost workers",
        "run r: 2 trials waiting",
        "all workers together answer at most 3 trials at the same time",
    ]
    assert list(ClusterStatus(workers={}, trials=[]).lines()) == ["no worker is running"]


def test_tools_are_those_of_the_machine_that_started_the_run():
    assert settings_for(HERE, ROW).keys == HERE.keys
    without = settings_for(HERE, replace(ROW, services=("openai",)))
    assert without.keys == {"OPENAI_API_KEY": "k"}
    with pytest.raises(InputError, match="metaculus"):
        settings_for(HERE, replace(ROW, services=("metaculus",)))


def test_database_address_is_required_and_never_shown():
    with pytest.raises(InputError, match="shared database"):
        shared_url(HERE)
    settings = load_settings({"FORETELL_DATABASE_URL": "postgresql://me:secret@db/arena"})
    assert shared_url(settings) == "postgresql://me:secret@db/arena"
    assert "secret" not in repr(settings)
    assert settings.store == settings.journal == "postgresql://me:secret@db/arena"


def test_settings_of_the_home_limit_all_workers_and_switch_off_the_network(tmp_path: Path) -> None:
    environment = {"FORETELL_HOME": str(tmp_path)}
    (tmp_path / "settings.toml").write_text("network = true\n")
    assert (load_settings(environment).workers_concurrency, load_settings(environment).network) == (None, True)
    (tmp_path / "settings.toml").write_text("workers_concurrency = 6\nnetwork = false\n")
    assert (load_settings(environment).workers_concurrency, load_settings(environment).network) == (6, False)
    (tmp_path / "settings.toml").write_text("workers_concurrency = 0\n")
    with pytest.raises(InputError, match=r"settings.toml, field workers_concurrency: must be a whole number above 0"):
        load_settings(environment)
