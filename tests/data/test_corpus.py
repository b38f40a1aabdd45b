"""The local corpus: imported files, their dates, and what a backtest may find."""

import asyncio
import gc
import gzip
import json
import zlib
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.cli.commands import operation_command
from foretell.data.corpus import Corpus, CorpusDocument, CorpusSearch, read_documents
from foretell.data.http import AsyncHttpClient
from foretell.data.search.engine import CannotSearch
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError

corpus_command = operation_command("corpus")

JULY = AsOf(at=instant("2026-07-01T12:00:00Z"))
LIVE = AsOf(at=instant("2026-10-01"), mode="live")
ARTICLE = "<p>The committee met on Thursday and kept the rate where it was, as nearly everyone had expected.</p>" * 3


def document(name: str, published: str | None, text: str = "the central bank rate", **more: object) -> CorpusDocument:
    day = instant(published) if published else None
    return CorpusDocument(url=f"https://x.example/{name}", title=name, text=text, published=day, **more)


@pytest.fixture
def corpus() -> Corpus:
    return Corpus(":memory:")


def found_titles(corpus: Corpus, query: str, as_of: AsOf = JULY, limit: int = 10) -> list[str]:
    return [hit.document.title for hit in corpus.search(query, as_of, limit)]


def test_the_file_of_a_search_engine_is_closed_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, closed = tmp_path / "corpus.db", list[Corpus]()
    Corpus(path).close()
    close = Corpus.close
    monkeypatch.setattr(Corpus, "close", lambda corpus: (close(corpus), closed.append(corpus)))
    engine = CorpusSearch.open(ServiceConfig(http=AsyncHttpClient(), corpus=path))
    assert asyncio.run(engine.search("rate", JULY)) == []
    assert closed == []
    del engine
    gc.collect()
    assert len(closed) == 1


def test_a_backtest_sees_only_documents_dated_by_the_cutoff(corpus: Corpus) -> None:
    corpus.add([document("old", "2026-06-01"), document("new", "2026-07-01T12:00:01Z"), document("undated", None)])
    corpus.add([document("at the cutoff", "2026-07-01T12:00:00Z")])
    assert sorted(found_titles(corpus, "rate")) == ["at the cutoff", "old"]
    assert len(found_titles(corpus, "rate", LIVE)) == 4


def test_the_capture_time_replaces_a_missing_date_and_is_marked(corpus: Corpus) -> None:
    seen, later = instant("2026-05-01"), instant("2026-08-01")
    corpus.add([document("seen", None, captured=seen), document("seen later", None, captured=later)])
    (hit,) = asyncio.run(CorpusSearch(corpus).search("rate", JULY))
    assert (hit.title, hit.published, hit.dating, hit.text_as_of) == ("seen", seen, "crawled", seen)


def test_importing_again_changes_nothing(corpus: Corpus) -> None:
    documents = [document("a", "2026-06-01"), document("b", None)]
    first, second = corpus.add(documents), corpus.add(documents)
    assert (first.added, first.known, first.undated) == (2, 0, 1)
    assert (second.added, second.known, len(corpus)) == (0, 2, 2)
    assert len(found_titles(corpus, "rate", LIVE)) == 2


def test_the_later_of_two_dates_of_the_same_text_is_kept(corpus: Corpus) -> None:
    for day in (None, "2026-06-01", "2026-08-01", "2026-06-15", None):
        corpus.add([document("a", day)])
    assert len(corpus) == 1
    assert found_titles(corpus, "rate") == []
    assert corpus.search("rate", LIVE)[0].document.published == instant("2026-08-01")


def test_search_supports_ranking_phrases_stems_and_accents(corpus: Corpus) -> None:
    corpus.add(
        [
            document("Rates", "2026-06-01", "something about a bank"),
            document("b", "2026-06-01", "the bank rate in passing, among many other words of little weight"),
            document("c", "2026-06-01", "Zażółć gęślą jaźń, über Ærlighet 中文"),
            document("d", "2026-06-01", "central heating of a bank"),
            document("e", "2026-06-01", "the central bank"),
        ]
    )
    assert found_titles(corpus, "rate")[0] == "Rates"
    assert found_titles(corpus, '"central bank"') == ["e"]
    assert found_titles(corpus, "uber gesla") == ["c"]
    assert found_titles(corpus, "中文") == ["c"]
    assert found_titles(corpus, "bank", limit=2).__len__() == 2
    assert found_titles(corpus, "zebra") == []


@pytest.mark.parametrize("query", ["", "?!", '"', '""', "*", "a OR", "NEAR(", "title:", "(", "-", 'x" OR "1'])
def test_no_query_causes_a_syntax_error(corpus: Corpus, query: str) -> None:
    corpus.add([document("a", "2026-06-01")])
    corpus.search(query, JULY)


@given(st.text(max_size=40))
@settings(max_examples=100)
def test_any_query_is_answered(query: str) -> None:
    corpus = Corpus(":memory:")
    corpus.add([document("a", "2026-06-01")])
    corpus.search(query, JULY)


def test_as_a_search_engine_it_returns_text_and_refuses_an_empty_query(corpus: Corpus) -> None:
    corpus.add([document("a", "2026-06-01", "the bank rate " * 100)])
    engine = CorpusSearch(corpus)
    (hit,) = asyncio.run(engine.search("rate", JULY))
    assert (engine.name, engine.filters_dates) == ("local", True)
    assert (hit.dating, hit.published) == ("published", instant("2026-06-01"))
    assert len(hit.snippet) < len(hit.text or "")
    with pytest.raises(CannotSearch):
        asyncio.run(engine.search(" ", JULY))


def test_files_of_a_folder_are_read_with_their_dates(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "2026-06-01-note.txt").write_text("A note\nabout rates", encoding="utf-8")
    (tmp_path / "sub" / "front.md").write_text(
        "---\ntitle: Ærlig talt\ndate: 2026-05-01\nupdated: 2026-06-02 10:00\n"
        "url: https://x.example/f\n---\n# Head\nbody",
        encoding="utf-8",
    )
    (tmp_path / "page.html").write_text(
        f'<html><head><title>Page</title><meta name="date" content="2026-06-03"></head><body>{ARTICLE}</body></html>'
    )
    (tmp_path / "2026-06-04_bare.htm").write_text(
        f"<html><head><title>Bare</title></head><body>{ARTICLE}</body></html>"
    )
    (tmp_path / "undated.md").write_text("# No date\ntext")
    (tmp_path / "empty.html").write_text("<html><body><script>x()</script></body></html>")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    by_title = {document.title: document for document in read_documents(tmp_path)}
    assert {title: str(document.published)[:16] for title, document in by_title.items()} == {
        "A note": "2026-06-01 00:00",
        "Ærlig talt": "2026-06-02 10:00",
        "Page": "2026-06-03 00:00",
        "Bare": "2026-06-04 00:00",
        "No date": "None",
    }
    assert by_title["Ærlig talt"].url == "https://x.example/f"
    assert by_title["Ærlig talt"].text == "# Head\nbody"
    assert by_title["A note"].url.startswith("file://")


def test_json_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    rows = [
        {"url": "u", "title": "t", "text": "å", "published": "2026-06-01T10:00:00Z", "captured": "2026-06-02"},
        {"url": "v", "title": "t", "text": "x", "published": None},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    first, second = read_documents(path)
    assert (first.published, first.captured, first.text) == (
        instant("2026-06-01T10:00:00Z"),
        instant("2026-06-02"),
        "å",
    )
    assert (second.published, second.source) == (None, "d.jsonl")


def test_pages_of_a_frozen_web_are_read_from_parquet_and_found_as_of_their_capture(tmp_path: Path) -> None:
    path = tmp_path / "pages.parquet"
    rows = (
        "('q1', 'https://a.example/1', 'Bill tabled', '2025-10-14T21:30:11.912205'), "
        "('q1', 'https://a.example/2', 'Bill passed', '2025-12-04T10:00:00')"
    )
    columns = "pages(question_id, url, content, date_scraped)"
    duckdb.sql(f"copy (select * from (values {rows}) as {columns}) to '{path}' (format parquet)")
    corpus = Corpus(tmp_path / "corpus.db")
    assert corpus.add(read_documents(path)).added == 2
    found = corpus.search("bill", AsOf.day("2025-10-15"))
    assert [hit.document.text for hit in found] == ["Bill tabled"]
    assert found[0].document.captured == instant("2025-10-14T21:30:11.912205Z")
    assert found[0].document.title == "https://a.example/1"


def test_addresses_without_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scraped_pages.parquet"
    duckdb.sql(f"copy (select 'q1' as question_id, 'https://a.example' as url) to '{path}' (format parquet)")
    with pytest.raises(InputError, match=r"row 1, column text: is missing .* addresses alone cannot be searched"):
        list(read_documents(path))
    assert list(read_documents(tmp_path)) == [], "a folder may hold other tables"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "row 2: is not JSON"),
        ("[]", "row 2: expected an object"),
        ('{"url": "u", "title": "t"}', "row 2, column text: is missing"),
        (
            '{"url": "u", "title": "t", "text": "x", "published": "soon"}',
            "row 2, column published: 'soon' is not a date",
        ),
    ],
)
def test_a_malformed_line_raises_with_row_and_column(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"url": "u", "title": "t", "text": "x"}\n' + line)
    with pytest.raises(InputError) as caught:
        list(read_documents(path))
    assert f"d.jsonl, {message}" in str(caught.value)


def test_malformed_front_matter_raises(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    for front, message in (("date: soon", "column date: 'soon' is not a date"), ("a: [", "not YAML")):
        path.write_text(f"---\n{front}\n---\nx")
        with pytest.raises(InputError, match=r"a\.md") as caught:
            list(read_documents(path))
        assert message in str(caught.value)


def record(kind: str, block: bytes, url: str = "https://x.example/a", date: str = "2026-06-01T10:00:00Z") -> bytes:
    lines = (f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", f"WARC-Date: {date}", f"Content-Length: {len(block)}")
    return "\r\n".join(("WARC/1.0", *lines, "\r\n")).encode() + block + b"\r\n\r\n"


def answer(body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/html; charset=utf-8") -> bytes:
    lines = "".join(f"{line}\r\n" for line in (f"Content-Type: {kind}", *headers))
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def page(title: str, head: str = "") -> bytes:
    return f"<html><head><title>{title}</title>{head}</head><body><article>{ARTICLE}</article></body></html>".encode()


def chunked(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:50], body[50:])) + b"0\r\n\r\n"


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_web_archives_are_read(tmp_path: Path, name: str) -> None:
    records = [
        record("warcinfo", b"software: x"),
        record("request", b"GET / HTTP/1.1\r\n\r\n"),
        record("response", answer(page("Plain", '<meta name="date" content="2026-05-05">'))),
        record("response", answer(chunked(page("Chunked")), "Transfer-Encoding: chunked")),
        record("response", answer(gzip.compress(page("Packed")), "Content-Encoding: gzip")),
        record("response", answer(zlib.compress(page("Deflated")), "Content-Encoding: deflate")),
        record("response", answer(page("Already unpacked"), "Content-Encoding: gzip")),
        record("response", answer(page("Brotli"), "Content-Encoding: br")),
        record("response", answer(page("Gone"), status="404 Not Found")),
        record("response", answer(b"\x89PNG\0", kind="image/png")),
        record("conversion", "Wet title\nÆ text".encode()),
    ]
    body = (
        b"".join(gzip.compress(record_bytes) for record_bytes in records) if name.endswith("gz") else b"".join(records)
    )
    (tmp_path / name).write_bytes(body)
    documents = list(read_documents(tmp_path / name))
    titles = [document.title for document in documents]
    assert titles == ["Plain", "Chunked", "Packed", "Deflated", "Already unpacked", "Wet title"]
    assert documents[0].published == instant("2026-05-05")
    assert {document.captured for document in documents} == {instant("2026-06-01T10:00:00Z")}
    assert documents[1].published is None
    assert all("kept the rate" in document.text for document in documents[:5])


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("a.warc", b"not an archive\n", "not a WARC file"),
        ("a.warc", record("conversion", b"text")[:-6], "cut off"),
        ("a.warc", b"WARC/1.0\r\nWARC-Type: x\r\n\r\n", "length"),
        ("a.warc.gz", gzip.compress(record("conversion", b"text"), mtime=0)[:-9], "damaged"),
        ("a.warc.gz", b"plain", "damaged"),
        ("a.docx", b"", "cannot be imported"),
    ],
)
def test_damaged_and_unknown_files_raise(tmp_path: Path, name: str, body: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(body)
    with pytest.raises(InputError, match=message):
        list(read_documents(tmp_path / name))


def test_a_missing_file_or_one_of_another_program_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read_documents(tmp_path / "nothing"))
    with pytest.raises(InputError, match="no corpus here"):
        Corpus(tmp_path / "nothing.sqlite", must_exist=True)
    (tmp_path / "x.sqlite").write_text("this is not a database, though it is long enough to be taken for one" * 20)
    with pytest.raises(InputError, match="not a corpus"):
        Corpus(tmp_path / "x.sqlite")


def test_the_commands_add_and_search_documents(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "2026-06-01-a.txt").write_text("Rates held\nThe bank held its rate.")
    (tmp_path / "in" / "2026-09-01-b.txt").write_text("Rates cut\nThe bank cut its rate.")
    (tmp_path / "in" / "c.txt").write_text("Rates\nThe undated rate.")
    run = CliRunner()
    where = ["--corpus", str(tmp_path / "c.sqlite")]
    first = run.invoke(corpus_command, ["add", str(tmp_path / "in"), *where])
    assert "3 added, 0 already there, 3 in" in first.output
    assert "1 have no date" in first.output
    assert "0 added, 3 already there" in run.invoke(corpus_command, ["add", str(tmp_path / "in"), *where]).output
    dated = run.invoke(corpus_command, ["search", "rate", "--as-of", "2026-07-01", *where])
    assert dated.output.splitlines()[0] == "2026-06-01  Rates held"
    assert "cut" not in dated.output
    assert run.invoke(corpus_command, ["search", "rate", *where]).output.count("Rates") == 6
    assert "nothing found" in run.invoke(corpus_command, ["search", "zebra", *where]).output
    assert isinstance(run.invoke(corpus_command, ["search", "x", "--as-of", "soon", *where]).exception, InputError)
