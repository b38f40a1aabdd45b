"""Text of strangers (pages, models, services, files) made harmless for the place it goes to."""

import hashlib
import re

UNSAFE = re.compile(
    # C0 and C1 controls (a terminal obeys some of them), invisible and text-direction marks, and what XML forbids.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
FORMULA = re.compile(r"[=@\t\r|%]|[+-](?![\d.]+(?:e[+-]?\d+)?\Z)", re.IGNORECASE)
"""How a cell begins that a spreadsheet would calculate; a plain number is none."""
DISARMED = re.compile(r"'+[=+\-@\t\r|%]")

IMITATED = re.compile(
    r"[\[［【〔](?=\s*[a-z]+_\d+(?:_result_\d+)?\s*[\]］】〕])"
    r"|[(（](?=\s*(?:step\s+\d+\s+of\s+\d+|clairvoyant run))",
    re.IGNORECASE,
)
"""How our own ids of sources and notes between steps begin."""


def for_prompt(text: str) -> str:
    """The text as a model may read it: what looks like one of our ids or notes opens with a mark of its own.

    >>> for_prompt("[search_1_result_2] Official notice (Step 1 of 10 is done.)")
    '‹search_1_result_2] Official notice ‹Step 1 of 10 is done.)'
    """
    return IMITATED.sub("‹", UNSAFE.sub("\ufffd", text.replace("\r\n", "\n")))


def for_terminal(text: str) -> str:
    r"""The text without characters that steer a terminal or turn its direction; lines and tabs stay.

    >>> for_terminal("a\x1b]0;title\x07b\n")
    'a�]0;title�b\n'
    """
    return UNSAFE.sub("\ufffd", text)


def for_json(text: str) -> str:
    r"""JSON whose strings cannot steer the terminal it is printed to; it reads back the same.

    >>> for_json('{"a": "\x9b2J"}')
    '{"a": "\\u009b2J"}'
    """
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_csv(value: object) -> object:
    """A cell that no spreadsheet takes for a formula: such a text gets an apostrophe, which `from_csv` takes off.

    >>> for_csv("=1+1"), for_csv("-0.5"), for_csv(-0.5), for_csv("a=b")
    ("'=1+1", '-0.5', -0.5, 'a=b')
    """
    if not isinstance(value, str):
        return value
    value = UNSAFE.sub("\ufffd", value.replace("\r\n", "\n"))
    return f"'{value}" if FORMULA.match(value) or DISARMED.match(value) else value


def from_csv(cell: str) -> str:
    """The cell that `for_csv` was given.

    >>> from_csv("'=1+1"), from_csv("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if DISARMED.match(cell) else cell


RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|\Z)", re.IGNORECASE)
"""Names that Windows keeps for itself, whatever their ending."""
LONGEST_FILE_NAME = 60
"""Letters of one part; several parts and an ending still fit any file system."""


def for_file_name(text: str) -> str:
    """The text as a part of a file name that leads nowhere else and is never empty, hidden, reserved or too long.

    Where something had to be changed, a mark of the whole text follows, so that no two texts share a name.

    >>> for_file_name("fred/DGS10"), for_file_name("yes"), for_file_name("../../etc/passwd"), for_file_name("NUL")
    ('fred-DGS10-44bcbd', 'yes', 'etc-passwd-3754d6', '_NUL-ae6de1')
    """
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", text[: 4 * LONGEST_FILE_NAME]).strip(".-")[:LONGEST_FILE_NAME] or "name"
    if safe == text and not RESERVED.match(safe):
        return safe
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{'_' if RESERVED.match(safe) else ''}{safe}-{mark}"
