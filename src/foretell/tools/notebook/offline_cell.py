"""The end of the first cell of a rerun notebook: it answers data requests from a file next to the notebook."""

import json as _json
from pathlib import Path as _Path
from typing import Any as _Any

_FILE = "notebook.data.json"
_answers: dict[str, list[_Any]] = {}


def _send(request: dict[str, _Any]) -> _Any:  # pyright: ignore[reportUnusedFunction] - the code above calls it
    if not _answers:
        for exchange in _json.loads(_Path(_FILE).read_text(encoding="utf-8")):
            _answers.setdefault(_json.dumps(exchange["request"], sort_keys=True), []).append(exchange["answer"])
    known = _answers.get(_json.dumps(request, sort_keys=True))
    if not known:
        return {"error": "this was not asked when the notebook was made, and there is no way to ask it now"}
    # Repeated requests get the next answer, and finally always the last.
    return known.pop(0) if len(known) > 1 else known[0]
