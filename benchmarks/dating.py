"""CPU time of the leakage filter's rules for a passage of 2 kB, as a ratio to the target of one millisecond.

Prints the median and the slowest 5 % over passages of prose with a dated line in one of many languages, each seen for
the first time; and how many times longer ten times the text takes, on very long lines.
"""

import time
from collections.abc import Callable
from statistics import median, quantiles

from foretell.studies.audit.leaks import ASKED, CUTOFF, LeakCase, leak_cases
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem

LENGTH = 2_000
ALLOWED = 0.001
PROSE = (
    "Officials in the capital spoke of long talks behind closed doors. Some members, they said, had asked for more "
    "time to "
    "weigh what wages and rents would do; others pointed to output, which had hardly grown for a year."
)
LONG_LINES = (
    "7",
    "2024-06-05 ",
    "June 5, ",
    "([{<",
    "3 days ago | ",
    "Updated ",
    "５ ",
    "a b c d e f ",
    "&#50;",
    "twenty ",
    "1717570800,",
    "Él se reunirá el 6 de junio de 2024 ",
    "mañana, en junio de 2024, será ",
)


def passage(cases: list[LeakCase], place: int) -> SourceItem:
    """Return a text of 2 kB: prose with a clean text that names a day or two."""
    text = cases[place * 7 % len(cases)].text
    while len(text) < LENGTH:
        text += f"\n{place}. {PROSE}"
    return SourceItem(
        title=cases[place % len(cases)].title,
        url=f"https://news.example.org/story-{place}",
        text=text[:LENGTH],
        published=CUTOFF.at.replace(month=3),
        dating="published",
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    clean = [case for case in leak_cases() if not case.leak and not case.refused_by_rules()]
    rules = LeakageRules(as_of=CUTOFF, question=ASKED)

    def cost(item: SourceItem) -> float:
        return seconds(lambda: rules.admit(item, "web_search"))

    took = [cost(passage(clean, place)) for place in range(600)]
    slow = quantiles(took, n=20)[-1]
    print(f"2 kB passage: median {median(took) / ALLOWED:.2f} of 1 ms, slowest twentieth {slow / ALLOWED:.2f}")
    for piece in LONG_LINES:
        ratio = cost(_endless(piece, 100_000)) / max(cost(_endless(piece, 10_000)), 1e-4)
        print(f"endless {piece!r}: ten times the text takes {ratio:.1f} times as long")


def _endless(piece: str, length: int) -> SourceItem:
    text = piece * (length // len(piece))
    return SourceItem(
        title="x", text=text, url="https://a.example/b", published=CUTOFF.at.replace(month=3), dating="published"
    )


if __name__ == "__main__":
    main()
