"""A report as one document: the same sections as a web page in one file, as Markdown, and on paper."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from foretell.data.files import write_atomically
from foretell.questions.errors import InputError
from foretell.report.html import HtmlBlock, LinkItem, OutlineItem, Section, page
from foretell.report.markup import markdown_text
from foretell.report.prose import quoted_markdown
from foretell.report.study_report import markdown_table


@dataclass(frozen=True, kw_only=True)
class ReportDocument:
    """Title, a paragraph that says it all, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]

    def to_html(self) -> str:
        """A whole page in one file: no request leaves it, it works without scripts, in the dark and on paper."""
        return page(self.title, self.sections, lead=self.lead)

    def to_markdown(self) -> str:
        """The same as GitHub-flavoured Markdown, without the charts."""
        parts = [f"# {markdown_text(self.title)}", f"**{markdown_text(self.lead)}**"]
        for _, heading, blocks in self.sections:
            texts = [text for block in blocks for text in _markdown(block)]
            parts += [f"## {markdown_text(heading)}", *texts] if texts else []
        return "\n\n".join(parts) + "\n"


def _markdown(block: HtmlBlock) -> Iterator[str]:
    """The paragraphs of a block."""
    if block.heading:
        yield f"### {markdown_text(block.heading)}"
    elif block.table is not None:
        yield from markdown_table(block.table)
    elif block.definitions:
        yield "\n".join(f"- {markdown_text(name)}: {markdown_text(value)}" for name, value in block.definitions)
    elif block.bullets:
        yield "\n".join(f"- {markdown_text(one)}" for one in block.bullets)
    elif block.prose:
        yield quoted_markdown(block.prose)
    elif block.links:
        yield "\n".join(f"- {_link(one)}" for one in block.links)
    elif block.outline:
        yield "\n".join(map(_outline_line, block.outline))
    elif block.text:
        yield markdown_text(block.text)


def _link(item: LinkItem) -> str:
    # In angle brackets an address may hold anything but these; `web_address` lets none of them through.
    text = f"[{markdown_text(item.text)}](<{item.address}>)" if item.address else markdown_text(item.text)
    return f"{text} {markdown_text(item.detail)}".rstrip()


def _outline_line(item: OutlineItem) -> str:
    tags = f" *({markdown_text('; '.join(item.tags))})*" if item.tags else ""
    return f"{'  ' * item.depth}- **{markdown_text(item.name)}** {item.value} {markdown_text(item.text)}{tags}"


# Pages on paper: a report's own HTML, printed by a Chromium that is on this machine.


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
SECONDS = 120.0
"""Longest time for one page."""


def find_chromium() -> str | None:
    """The browser that prints: the one that FORETELL_CHROMIUM names, else the first of its kind on the path."""
    named = os.environ.get("FORETELL_CHROMIUM")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


def write_pdf(html: str, path: Path) -> Path:
    """Print a page that needs nothing from elsewhere to a PDF file."""
    browser = find_chromium()
    if browser is None:
        raise InputError(
            "a PDF is printed by Chromium, and none is on this machine",
            path=path,
            hint="install chromium, name one in FORETELL_CHROMIUM, or write .html and print it from your browser",
        )
    with tempfile.TemporaryDirectory(prefix="foretell-pdf-") as folder:
        page, made = Path(folder) / "report.html", Path(folder) / "report.pdf"
        page.write_text(html, encoding="utf-8")
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/profile",
            # The page asks for nothing; should a text in it ever find a way to, there is nowhere to go.
            "--proxy-server=127.0.0.1:9",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--print-to-pdf={made}",
            page.as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to start for root with one.
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"{browser} did not print: {error}", path=path, hint="write .html instead") from None
        if not made.is_file():
            told = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = told[-1][:300] if told else f"it ended with {done.returncode}"
            raise InputError(f"{browser} did not print: {why}", path=path, hint="write .html instead")
        write_atomically(path, made.read_bytes())
    return path
