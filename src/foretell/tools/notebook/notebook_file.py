"""The file of a notebook, the file with its data, and what is recorded in them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from foretell.questions.errors import InputError

OURS = "foretell"
"""The key of what foretell records in the metadata of a notebook."""


def data_path(notebook: Path) -> Path:
    """Return the path of the file next to a notebook with the data it read."""
    return notebook.with_suffix(".data.json")


def read_notebook(path: Path) -> dict[str, Any]:
    """Return the content of an `.ipynb` file; raise `InputError` if it is not one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and isinstance(cast("dict[str, Any]", document)["cells"], list):
            return cast("dict[str, Any]", document)
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", path=path) from None
    except (ValueError, KeyError):
        pass
    raise InputError("is not a notebook", path=path)


def conclusion_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the conclusion recorded in a notebook's file: claim, p and key factor."""
    return cast("Mapping[str, Any]", document.get("metadata", {}).get(OURS, {}).get("conclusion", {}))
