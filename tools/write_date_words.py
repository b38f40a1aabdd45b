"""Writes src/foretell/tools/dates/calendar_words.json: names of months, weekdays and ages in many languages.

The names are those of the Unicode CLDR, read through Babel, which only this script needs.
"""

import json
import re
from pathlib import Path
from typing import Any

from babel import Locale

from foretell.tools.dates.folding import fold

LANGUAGES = re.findall(
    r"\w+",
    "en de fr es pt it nl sv da nb nn fi is pl cs sk sl hr sr sr_Latn bs mk bg uk ru be ro hu el tr az kk uz ka hy ar "
    "ar_SY ar_MA fa ur he hi bn mr ta te kn ml gu pa ne si th vi id ms fil sw am ko ja zh zh_Hant lt lv et ca eu gl "
    "sq af my km lo cy lb",
)
UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
FILE = Path(__file__).parents[1] / "src/foretell/tools/dates/calendar_words.json"


def names(table: Any) -> list[tuple[int, str]]:
    """Numbers and names of every form that a table holds, but for single letters."""
    found: list[tuple[int, str]] = []
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            try:
                found += [
                    (int(number), fold(name).lower().strip(". ")) for number, name in table[context][width].items()
                ]
            except KeyError:
                continue
    return [(number, name) for number, name in found if not any(letter.isdigit() for letter in name) and len(name) > 1]


def ages(fields: Any) -> set[str]:
    """Ways to say "3 hours ago", with {} for the number."""
    found: set[str] = set()
    for unit in UNITS:
        for width in ("", "-short", "-narrow"):
            past = fields.get(unit + width, {}).get("past", {})
            found |= {fold(str(text)).lower().strip() for text in past.values()}
    # A form without a number is an ordinary word, such as "yesterday" or "un jour".
    return {text.replace("{0}", "{}") for text in found if "{0}" in text and text.replace("{0}", "").strip(" -")}


def main() -> None:
    """Write the file anew."""
    months: dict[str, set[int]] = {}
    weekdays: set[str] = set()
    past: set[str] = set()
    for language in LANGUAGES:
        locale = Locale.parse(language)
        for number, name in names(locale.months):
            months.setdefault(name, set()).add(number)
        weekdays |= {name for _, name in names(locale.days)}
        past |= ages(locale._data["date_fields"])  # pyright: ignore[reportPrivateUsage]
    # "-3 d" is how some languages abbreviate an age; in English it is a number.
    past = {text for text in past if not text.lstrip("-−").startswith("{}") or text[0] == "{"}
    FILE.write_text(
        json.dumps(
            {
                "months": {name: sorted(numbers) for name, numbers in sorted(months.items())},
                "weekdays": sorted(weekdays),
                "ages": sorted(past),
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
