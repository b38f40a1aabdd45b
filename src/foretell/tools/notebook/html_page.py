"""A notebook as one HTML page that needs nothing else and in which nothing can run."""

import base64
import re
from html import escape
from itertools import groupby

from foretell.tools.notebook.notebook import CellAttempt, MarkdownCell, Notebook, NotebookCell
from foretell.tools.notebook.outputs import DisplayOutput, Output, harmless_html

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bad: #c33; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; padding: .5rem .7rem; background: var(--soft); }
.code { border-left: 3px solid var(--line); } .count { color: #888; font-size: 12px; } .error { color: var(--bad); }
img { max-width: 100%; background: #fff; } table { border-collapse: collapse; font-size: 14px; }
td, th { border: 1px solid var(--line); padding: .2rem .5rem; text-align: right; }
details { margin: .4rem 0; } summary { color: #888; cursor: pointer; }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Tells browsers to load and run nothing, should anything ever slip through."""
HEADING = re.compile(r"#{1,6} ")
POINT = re.compile(r"\s*[-*+]\s")
INLINE = (
    (re.compile(r"`([^`\n]{1,300})`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*\n]{1,300})\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*([^*\s][^*\n]{0,300})\*"), r"<em>\1</em>"),
)


def notebook_page(notebook: Notebook, title: str = "Notebook") -> str:
    """The whole page."""
    facts = "".join(f"<li>{escape(str(key))}: {escape(str(value))}</li>" for key, value in notebook.facts.items())
    cells = "\n".join(map(_cell, notebook.cells))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n<h1>{escape(title)}</h1>\n"
        f"<details><summary>How it was made</summary><ul>{facts}</ul></details>\n{cells}\n</main></body></html>\n"
    )


def _cell(cell: NotebookCell) -> str:
    if isinstance(cell, MarkdownCell):
        return f"<section>{marked(cell.source)}</section>"
    code = f'<pre class="code"><code>{escape(cell.source)}</code></pre>'
    if cell.setup:
        code = f"<details><summary>Setup</summary>{code}</details>"
    count = f'<div class="count">[{cell.count if cell.count is not None else " "}]</div>'
    problem = f'<pre class="error">{escape(cell.problem)}</pre>' if cell.problem else ""
    outputs = "".join(map(_output, cell.outputs))
    return f"<section>{count}{code}{''.join(map(_attempt, cell.attempts))}{outputs}{problem}</section>"


def _attempt(attempt: CellAttempt) -> str:
    outputs = "".join(map(_output, attempt.outputs))
    problem = f'<pre class="error">{escape(attempt.problem)}</pre>' if attempt.problem else ""
    code = f'<pre class="code"><code>{escape(attempt.source)}</code></pre>'
    return f"<details><summary>A version that failed</summary>{code}{outputs}{problem}</details>"


def _output(output: Output) -> str:
    if isinstance(output, DisplayOutput):
        if output.image:
            data = base64.b64encode(output.image).decode()
            return (
                f'<p><img alt="{escape(output.text[:200])}" src="data:{escape(output.image_kind)};base64,{data}"></p>'
            )
        return harmless_html(output.html) or f"<pre>{escape(output.text)}</pre>"
    return f"<pre>{escape(output.text)}</pre>"


def marked(text: str) -> str:
    r"""The commonest marks of Markdown: headings, lists, code, emphasis. Everything else stays as it was written.

    >>> marked("# Plan\n\n- look **up** <b>")
    '<h2>Plan</h2>\n<ul><li>look <strong>up</strong> &lt;b&gt;</li></ul>'
    """
    blocks: list[str] = []
    prose: list[str] = []
    code: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("```"):
            blocks += _prose(prose) if code is None else [_preformatted(code)]
            prose, code = [], [] if code is None else None
        else:
            (prose if code is None else code).append(line)
    blocks += _prose(prose) if code is None else [_preformatted(code)]
    return "\n".join(blocks)


def _preformatted(lines: list[str]) -> str:
    return f"<pre><code>{escape(chr(10).join(lines))}</code></pre>"


def _prose(lines: list[str]) -> list[str]:
    """Paragraphs, lists and tables end with a blank line, headings with their own."""
    blocks: list[str] = []
    for kind, group in groupby(lines, key=_kind):
        if kind == "heading":
            blocks += map(_heading, group)
        elif kind == "words":
            blocks.append(_paragraph(list(group)))
    return blocks


def _kind(line: str) -> str:
    return "blank" if not line.strip() else "heading" if HEADING.match(line) else "words"


def _heading(line: str) -> str:
    marks, _, words = line.partition(" ")
    level = min(len(marks) + 1, 6)
    return f"<h{level}>{_inline(words.strip())}</h{level}>"


def _paragraph(lines: list[str]) -> str:
    if all(POINT.match(line) for line in lines):
        return "<ul>" + "".join(f"<li>{_inline(line.strip()[1:].strip())}</li>" for line in lines) + "</ul>"
    if all(line.lstrip().startswith("|") for line in lines):
        return _preformatted(lines)
    return f"<p>{_inline(' '.join(line.strip() for line in lines))}</p>"


def _inline(text: str) -> str:
    text = escape(text, quote=False)
    for pattern, written in INLINE:
        text = pattern.sub(written, text)
    return text
