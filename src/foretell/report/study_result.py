"""The result of a study with the ways to show it: terminal, Markdown, page and files."""

from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.report.document import markdown_study, print_study, study_page, write_outputs
from foretell.report.study import StudyContent
from foretell.report.terminal import console

if TYPE_CHECKING:
    from rich.console import Console


class StudyResult(StudyContent):
    """The result of a study, ready to print, to write as a page and to save."""

    def write_folder(self, folder: Path) -> list[Path]:
        """Write the page, Markdown, JSON and all charts into a folder; returns the files written."""
        folder.mkdir(parents=True, exist_ok=True)
        files = write_outputs(self, [folder / f"{self.name}{suffix}" for suffix in (".html", ".md", ".json")])
        return [*files, *(self.write_charts(folder / f"{self.name}.svg") if self.charts else ())]

    def print(self, console: "Console") -> None:
        """Print the result in a terminal."""
        print_study(self, console)

    def __str__(self) -> str:
        """Return the text that a terminal of 80 columns shows, without colour."""
        return self._printed(80)

    def _printed(self, width: int) -> str:
        text = StringIO()
        self.print(console(file=text, width=width, color_system=None))
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the text that a terminal of 120 columns shows, and the charts, for a notebook."""
        charts = (chart.chart._repr_html_() for chart in self.charts)  # pyright: ignore[reportPrivateUsage]
        return "".join([f"<pre>{escape(self._printed(120))}</pre>", *charts])

    def to_markdown(self) -> str:
        """Return the result as Markdown."""
        return markdown_study(self)

    def to_html(self) -> str:
        """Return the result as a single web page that needs no network."""
        return study_page(self)
