from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.runs.settings import clock_of, load_settings


def test_the_default_clock_is_the_system_clock():
    now = clock_of(load_settings({}))()
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_clock_file_is_read_on_every_call(tmp_path: Path):
    file = tmp_path / "clock"
    file.write_text("2026-11-01T00:00:00Z\n")
    clock = clock_of(load_settings({"FORETELL_CLOCK": f"file:{file}"}))
    assert clock() == instant("2026-11-01")
    file.write_text("2026-11-02T06:30:00+00:00")
    assert clock() == instant("2026-11-02T06:30:00Z")


def test_an_unreadable_clock_file_is_an_error(tmp_path: Path):
    with pytest.raises(InputError, match=r"FORETELL_CLOCK.*file:PATH"):
        clock_of(load_settings({"FORETELL_CLOCK": "noon"}))
    with pytest.raises(InputError, match="no such file"):
        clock_of(load_settings({"FORETELL_CLOCK": f"file:{tmp_path / 'none'}"}))
    (tmp_path / "clock").write_text("2026-11-01T00:00:00")
    with pytest.raises(InputError, match="no time zone"):
        clock_of(load_settings({"FORETELL_CLOCK": f"file:{tmp_path / 'clock'}"}))
