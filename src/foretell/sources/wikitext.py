"""Wikitext to readable text, from the source alone: what a template would show today is never looked up."""

import html
import re

_TOKENS = re.compile(r"\{\{|\}\}|\[\[|\]\]")
_PAIR = {"}}": "{{", "]]": "[["}
HEADING = re.compile(r"^(={2,6})[ \t]{0,9}(\S.{0,250}?)[ \t]{0,9}\1[ \t]*(?:<!--.{0,200}?-->[ \t]*)?$", re.MULTILINE)
_DROPPED_TAGS = ("ref", "gallery", "timeline", "imagemap", "score")
_DROPPED_LINKS = ("file:", "image:", "category:", "media:")
_SHOWN_FIRST = frozenset(
    {
        "nowrap", "small", "big", "nobr", "em", "strong", "nobold", "flag", "flagcountry", "flagu", "abbr",
        "tooltip", "val", "nts", "number", "formatnum", "url", "center",
    }
)  # fmt: skip
_SHOWN_SECOND = frozenset(
    {
        "lang", "transl", "color", "font color", "sort",
    }
)  # fmt: skip
_JOINED = frozenset(
    {
        "convert", "cvt", "start date", "end date", "start date and age", "end date and age", "birth date",
        "birth date and age", "death date", "death date and age", "dts", "date", "as of", "us$", "usd", "eur", "gbp",
        "hlist", "flatlist", "unbulleted list", "ubl", "plainlist", "sortname",
    }
)  # fmt: skip


def readable(source: str) -> str:
    """The text of a page: links by their label, infoboxes as lines, tables as rows of cells between bars.

    >>> print(readable("'''Oslo''' is the [[capital city|capital]] of Norway.<ref>x</ref> {{Clear}}"))
    Oslo is the capital of Norway.
    """
    text = _without(source, re.compile("<!--"), re.compile("-->"))
    for name in _DROPPED_TAGS:
        text = _without(
            text, re.compile(rf"<{name}\b[^<>]*>", re.IGNORECASE), re.compile(rf"</{name}\s*>", re.IGNORECASE)
        )
    text = _tables(_folded(text))
    text = re.sub(r"\[(?:https?:)?//[^\s\[\]]+\s+([^\[\]\n]*)\]", r"\1", text)
    text = re.sub(r"\[(?:https?:)?//[^\s\[\]]*\]|__[A-Z]+__|'{2,}", "", text)
    text = re.sub(r"<br\s*/?>", "\n", text, flags=re.IGNORECASE)
    text = re.sub(r"</?[a-zA-Z][^<>]*>", "", text)
    text = re.sub(r"^[*#:;]+[ \t]*", "- ", text, flags=re.MULTILINE)
    text = HEADING.sub(lambda m: f"{'#' * len(m[1])} {m[2]}", text)
    return _tidy(html.unescape(text))


def _without(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Without what stands between two marks. Where one is never closed the rest stays, so that time stays linear."""
    kept: list[str] = []
    at = 0
    while (begun := opening.search(text, at)) is not None:
        ended = begun if begun[0].endswith("/>") else closing.search(text, begun.end())
        if ended is None:
            break
        kept.append(text[at : begun.start()])
        at = ended.end()
    return "".join(kept) + text[at:]


def _folded(text: str) -> str:
    """Templates and links from the inside out, each replaced by what can be read of it."""
    open_: list[tuple[str, list[str]]] = [("", [])]
    at = 0
    for token in _TOKENS.finditer(text):
        open_[-1][1].append(text[at : token.start()])
        at = token.end()
        kind = token[0]
        if kind in _PAIR.values():
            open_.append((kind, []))
        elif open_[-1][0] == _PAIR[kind]:
            inside = "".join(open_.pop()[1])
            open_[-1][1].append(_template(inside) if kind == "}}" else _link(inside))
        else:
            open_[-1][1].append(kind)
    open_[-1][1].append(text[at:])
    return "".join(opener + "".join(parts) for opener, parts in open_)


def _link(inside: str) -> str:
    target, *labels = inside.split("|")
    if target.strip().lower().startswith(_DROPPED_LINKS):
        return ""
    return (labels[-1] if labels else target).strip().lstrip(":")


def _template(inside: str) -> str:
    name, *given = inside.split("|")
    name = " ".join(name.split()).lower()
    if name.startswith("infobox"):
        return _infobox(given)
    values = [one.strip() for one in given if "=" not in one and one.strip()]
    if name in _SHOWN_FIRST:
        return "".join(values[:1])
    if name in _SHOWN_SECOND:
        return "".join(values[1:2])
    return " ".join(values) if name in _JOINED else ""


def _infobox(given: list[str]) -> str:
    pairs = (one.split("=", 1) for one in given if "=" in one)
    rows = [(key.strip().replace("_", " "), " ".join(value.split())) for key, value in pairs]
    return "\n" + "".join(f"{key}: {value}\n" for key, value in rows if value and len(value) < 500)


def _tables(text: str) -> str:
    """Every table, innermost first, as one line per row."""
    while (end := text.find("\n|}")) >= 0 and (start := text.rfind("{|", 0, end)) >= 0:
        text = text[:start] + _rows(text[start + 2 : end]) + text[end + 3 :]
    return text


def _rows(table: str) -> str:
    rows: list[list[str]] = [[]]
    for line in table.split("\n")[1:]:
        mark, rest = line.lstrip()[:1], line.lstrip()[1:]
        if line.lstrip().startswith("|-"):
            rows.append([])
        elif line.lstrip().startswith("|+"):
            rows[-1:] = [[_cell(rest[1:])], []]
        elif mark in ("|", "!") and mark:
            rows[-1] += [_cell(one) for one in re.split(r"\|\||!!" if mark == "!" else r"\|\|", rest)]
        elif rows[-1] and line.strip():
            rows[-1][-1] += " " + line.strip()
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows if any(cells))


def _cell(text: str) -> str:
    """Without the attributes that may stand before a single bar."""
    attributes, bar, rest = text.partition("|")
    return (rest if bar and "=" in attributes else text).strip()


def _tidy(text: str) -> str:
    lines = (re.sub(r"[ \t\u00a0]+", " ", line).strip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
