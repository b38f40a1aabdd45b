"""How many leaks the leakage filter's rules stop, and how many clean texts, on the texts in `leak_texts.jsonl`.

The texts name a day after their cutoff, and each claims to be five days older than it. Clean ones are mostly previews:
expectations, prices, polls, plans and schedules. Prints the counts for every set, and with `--kinds` for every kind;
`--wrong` prints the texts that the rules judge wrongly.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from foretell.questions.as_of import AsOf
from foretell.studies.audit.leaks import ADDRESS, ASKED
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import Refusal, SourceItem

TEXTS = Path(__file__).with_suffix(".jsonl")
AGE = timedelta(days=5)


@dataclass(frozen=True, kw_only=True)
class LeakText:
    """A text, and whether it reveals something after its cutoff."""

    set: str
    """`development` if rules were tuned on it; `held out` and `control` if it was first measured with finished rules,
    and some rules were improved for it afterwards. The report has the first figures of each set."""
    kind: str
    leak: bool
    cutoff: str
    text: str

    def refusal(self) -> str | None:
        """Return why the rules refuse it, or None."""
        as_of = AsOf.day(self.cutoff)
        item = SourceItem(title="", url=ADDRESS, text=self.text, published=as_of.at - AGE, dating="published")
        admitted = LeakageRules(as_of=as_of, question=ASKED).admit(item, "web_search")
        return admitted.reason if isinstance(admitted, Refusal) else None


def leak_texts() -> list[LeakText]:
    """Read the texts."""
    return [LeakText(**json.loads(line)) for line in TEXTS.read_text(encoding="utf-8").splitlines()]


def shares(texts: list[LeakText], group: Callable[[LeakText], str]) -> dict[tuple[str, bool], tuple[int, int]]:
    """Return how many texts are refused, and how many there are, by group and by whether they are leaks."""
    counts = Counter((group(text), text.leak) for text in texts)
    refused = Counter((group(text), text.leak) for text in texts if text.refusal() is not None)
    return {key: (refused[key], count) for key, count in counts.items()}


def _set(text: LeakText) -> str:
    return text.set


def _set_and_kind(text: LeakText) -> str:
    return f"{text.set}: {text.kind}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", action="store_true", help="count by kind")
    parser.add_argument("--wrong", action="store_true", help="print the texts that are judged wrongly")
    options = parser.parse_args()
    texts = leak_texts()
    for (name, leak), (refused, count) in shares(texts, _set_and_kind if options.kinds else _set).items():
        print(f"{name}, {'leaks stopped' if leak else 'clean dropped'}: {refused} of {count} ({refused / count:.1%})")
    for text in texts if options.wrong else ():
        reason = text.refusal()
        if text.leak != (reason is not None):
            verdict = "missed" if text.leak else "dropped"
            print(f"{verdict} | {text.kind} | {text.cutoff} | {text.text!r} | {reason or ''}")


if __name__ == "__main__":
    main()
