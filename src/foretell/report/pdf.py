"""Pages on paper: a report's own HTML, printed by a Chromium that is on this machine."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from foretell.data.files import write_atomically
from foretell.questions.errors import InputError

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
