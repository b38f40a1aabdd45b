"""The kernel launcher, tested outside of a sandbox: cutting of output, and limits in a separate process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from foretell.tools.notebook import kernel_launcher
from foretell.tools.notebook.kernel_launcher import OutputCutter, cut

CAPS = {"text": 300, "html": 50, "image": 30, "pieces": 4, "cell": 1_000}


def message(kind: str, cell: str = "c", **content: Any) -> dict[str, Any]:
    return {"header": {"msg_type": kind}, "parent_header": {"msg_id": cell}, "content": content}


def test_long_texts_are_cut_in_the_middle() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("a" * 100 + "b" * 100, 30) == "a" * 20 + "\n[170 characters left out]\n" + "b" * 10
    assert cut("\ud800", 5) == "?"


def test_every_kind_of_output_is_cut() -> None:
    cutter = OutputCutter(CAPS)
    printed = message("stream", text="x" * 10_000)
    cutter.cut(printed)
    assert len(printed["content"]["text"]) < 400
    display = message(
        "display_data",
        data={"text/html": "h" * 51, "image/png": "i" * 4_200, "text/latex": "ok", "application/json": {}},
    )
    cutter.cut(display)
    assert set(display["content"]["data"]) == {"text/latex", "text/plain"}
    failed = message("error", ename="E", evalue="v" * 50_000, traceback=["l" * 50_000] * 100)
    cutter.cut(failed)
    assert len(json.dumps(failed)) < 2_000_000
    assert len(failed["content"]["traceback"]) == 60


def test_endless_output_is_cut_off_for_one_cell_only() -> None:
    cutter = OutputCutter(CAPS)
    assert [cutter.full(message("display_data", data={})) for _ in range(21)] == [False] * 20 + [True]
    printed = [message("stream", text="x") for _ in range(201)]
    assert [cutter.full(output) for output in printed] == [False] * 200 + [True]
    assert [output["content"]["text"] for output in printed[198:200]] == ["x", "\n[further output left out]\n"]
    assert not cutter.full(message("execute_result", data={}))
    assert not cutter.full(message("stream", cell="d", text="x"))
    for _ in range(10):
        cutter.cut(message("stream", cell="d", text="x" * 290))
    assert cutter.full(message("stream", cell="d", text="x"))


def test_limits_cannot_be_raised() -> None:
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(kernel_launcher.__file__).parent)!r})
import kernel_launcher as launch
launch.limit({{"CPU": 50, "CORE": 0}})
launch.limit({{"CPU": 500}})
print(resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_CORE))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(50, 50) (0, 0)\n"
