import gc
import weakref

from tests.tools.doubles import CUTOFF, keeps_all, question

from foretell.tools.fence import Fence, Fenced
from foretell.tools.leaks import LeakFilter


def test_a_trial_leaves_no_circle_behind():
    """Texts must be freed with the trial itself, not when a collector comes along."""
    fence = Fence(as_of=CUTOFF, question=question())
    toolbox = Fenced.around((), fence, LeakFilter(model=keeps_all(), name="scripted:x"))
    shelf = weakref.ref(toolbox.shelf)
    gc.disable()
    try:
        del toolbox
        assert shelf() is None
    finally:
        gc.enable()
