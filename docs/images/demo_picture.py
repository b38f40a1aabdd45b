"""Draws demo.svg, the picture of the README: foretell demo --tables run && python docs/images/demo_picture.py run."""

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from foretell.report.leaderboard import print_board
from foretell.scoring.join import read_table
from foretell.scoring.score import ScoringOptions, score_table


def main(run: Path) -> None:
    """Print the overall board of a demo run into an SVG that asks no other server for fonts."""
    table = read_table(run / "forecasts.csv", run / "outcomes.csv")
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
    console.print("$ make demo", style="bold green")
    print_board(score_table(table, ScoringOptions()), console)
    svg = console.export_svg(title="foretell demo")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S)
    Path(__file__).with_name("demo.svg").write_text(re.sub(r"<!--.*?-->", "", svg), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
