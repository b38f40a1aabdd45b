"""A report as one document: the same sections as a web page in one file, as Markdown, and on paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
