import gc
import weakref

from tests.tools.doubles import CUTOFF, keeps_all, question

from foretell.tools.fence import FencedTools
from foretell.tools.leak_filter import LeakFilter
from foretell.tools.rules import FenceRules


def test_a_trial_leaves_no_circle_behind():
    """Texts must be freed with the trial itself, not when a collector comes along."""
    fence = FenceRules(as_of=CUTOFF, question=question())
    toolbox = FencedTools.around((), fence, LeakFilter(model=keeps_all(), name="scripted:x"))
    shelf = weakref.ref(toolbox.shelf)
    gc.disable()
    try:
        del toolbox
        assert shelf() is None
    finally:
        gc.enable()
