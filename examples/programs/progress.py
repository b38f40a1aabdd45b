"""Watch the progress of a long backtest, here as one line on stderr."""

import sys

import foretell


def show(done: int, total: int) -> None:
    """Rewrite the line after every hundred answers."""
    if done % 100 == 0 or done == total:
        print(f"\r{done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


questions = foretell.open_benchmark("demo")
result = foretell.backtest(["knn", "prior"], questions, progress=show)
print(foretell.score(result).to_pandas().to_string())
