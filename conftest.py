"""What holds for all of pytest: tests and the examples in docstrings."""

import atexit
import gc
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem, DoctestModule

from foretell.questions.file_lock import LockHeld, locked

COLLECTING = Path(__file__).parent / ".pytest_cache" / "collecting"
# As many workers as cores are at work already: threads of linear algebra would wait for each other, busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# While tests are compiled and collected, next to nothing becomes garbage.
gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """One worker collects first, alone: on a clean clone the others then need not compile every test again."""
    with ExitStack() as alone:
        if "PYTEST_XDIST_WORKER" in os.environ:
            try:
                alone.enter_context(locked(COLLECTING, wait=False))
            except LockHeld:
                with locked(COLLECTING):
                    pass
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path):
    """A module that holds no example is neither imported nor searched for one: every worker would pay for that."""
    found = yield
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text(encoding="utf-8"):
        found = [one for one in found if not isinstance(one, DoctestModule)]
    return found


def pytest_collection_finish() -> None:
    """What is imported and collected stays: the garbage collector need not look through it again and again."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # What stays frozen cannot be freed at exit, and nanobind would report it as leaked.
    # What tests drop is mostly freed at once: looking for the rest after every 700 objects takes 4 % of their time.
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


@pytest.fixture(autouse=True)
def _home_of_examples(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """An example in a docstring stores nothing in the home of whoever runs it, and uses no network."""
    with pytest.MonkeyPatch.context() as patch:
        if isinstance(request.node, DoctestItem):
            home = tmp_path_factory.mktemp("home")
            (home / "settings.toml").write_text("network = false\n", encoding="utf-8")
            patch.setenv("FORETELL_HOME", str(home))
        yield
