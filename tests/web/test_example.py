"""The example home in a real browser: how many clicks what people want takes."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import expect

from foretell.models import facts
from foretell.operations.example import serving_example
from foretell.runs.settings import CHECKED_MODELS, KNOWN_MODELS, Settings
from foretell.web.app import create_app

PATIENCE = 90_000


@pytest.fixture(scope="module")
def example(made_example: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A copy of the example, with its services."""
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(made_example.home, home)
    before = facts._HOME_FILES[:]  # pyright: ignore[reportPrivateUsage]
    facts.use_facts_from(home / CHECKED_MODELS, home / KNOWN_MODELS)
    with serving_example(home) as settings:
        yield settings
    facts.use_facts_from(*before)


@pytest.fixture(autouse=True)
def patience(page: Any) -> Iterator[None]:
    """On a busy machine a first page takes long, and nothing here is about speed."""
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def example_app(example: Settings, token: str, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setenv("FORETELL_MODEL", "openai:practice")
    monkeypatch.setenv("FORETELL_SEARCH", "brave")
    return create_app(example, token=token)


@dataclass
class Visitor:
    """Somebody whose clicks are counted."""

    page: Any
    clicks: int = 0

    def click(self, what: Any) -> None:
        self.clicks += 1
        what.click()


def test_a_question_is_answered_without_any_key_in_one_click(page: Any, site: Any) -> None:
    visitor = Visitor(page)
    page.goto(site.url)
    page.get_by_label("Question", exact=True).fill("Will it snow in Oslo by Christmas 2026?")
    visitor.click(page.get_by_role("button", name="Ask", exact=True))
    expect(page.locator("#probability")).to_contain_text("%")
    assert visitor.clicks <= 2


def test_what_people_want_takes_few_clicks(page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any]) -> None:
    site = serve(example_app)
    page.goto(site.login)

    def start() -> Visitor:
        page.goto(site.url)
        return Visitor(page)

    visitor = start()  # Ask with a key.
    page.get_by_label("Question", exact=True).fill("Will it snow in Oslo by Christmas 2026?")
    visitor.click(page.get_by_role("button", name="Ask", exact=True))
    expect(page.locator("#estimate")).to_contain_text("Costs nothing")
    expect(page.get_by_label("brave", exact=True)).to_be_checked()
    visitor.click(page.get_by_role("button", name="Research it"))
    expect(page.locator("#probability")).to_contain_text("%")
    expect(page.get_by_role("button", name="Stop the run")).to_have_count(0)
    assert visitor.clicks <= 2

    visitor = start()  # Why this number, which evidence moved it, open the source.
    expect(page.get_by_role("link", name="Research, step by step")).to_be_visible()
    visitor.click(page.get_by_role("link", name="example: an agent's research").first)
    visitor.click(page.get_by_role("link", name="Will the Bank of Norland lower its policy rate"))
    expect(page.locator("#answer .big")).to_contain_text("%")
    expect(page.locator("#moved li strong").first).to_contain_text("pts")
    expect(page.locator("#withheld")).to_contain_text("it has no date")
    expect(page.locator("#change li").first).to_be_visible()
    visitor.click(page.locator("#moved .seen").first)
    expect(page.locator("details.saw[open] pre").first).to_be_visible()
    assert visitor.clicks <= 3
    image = page.locator("meta[property='og:image']").get_attribute("content")
    assert page.request.get(image).headers["content-type"] == "image/png"
    assert page.request.get(page.locator("link[rel=canonical]").get_attribute("href")).ok

    visitor = start()  # Why a cell failed, and retry it.
    visitor.click(page.get_by_role("link", name="example: one search and an answer").first)
    expect(page.locator("#failures")).to_contain_text("out of service")
    visitor.click(page.get_by_role("button", name="Try what failed again"))
    expect(page.locator("#progress [role=status]")).to_contain_text("4 forecasts, 0 failures")
    assert visitor.clicks <= 3

    visitor = start()  # Compare three runs and more.
    visitor.click(page.get_by_role("link", name="Runs", exact=True))
    visitor.click(page.get_by_role("link", name="compare 6 runs on demo"))
    expect(page.get_by_role("heading", name="6 runs on one board")).to_be_visible()
    expect(page.locator("main .lead").first).to_contain_text("leads")
    assert visitor.clicks <= 3

    visitor = start()  # Watch a run, rename it, remove it.
    visitor.click(page.get_by_role("link", name="always 0.5").first)
    expect(page.locator("#progress [role=status]")).to_contain_text("Finished")
    page.get_by_label("Name", exact=True).fill("a shrug")
    visitor.click(page.get_by_role("button", name="Save", exact=True))
    expect(page.get_by_role("heading", name="a shrug")).to_be_visible()
    assert visitor.clicks <= 2
    visitor = Visitor(page)
    visitor.click(page.get_by_text("Remove this run"))
    visitor.click(page.get_by_role("button", name="Remove it"))
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    expect(page.get_by_text("a shrug")).to_have_count(0)
    assert visitor.clicks <= 2


def test_an_unknown_price_is_asked_for_in_place_and_nothing_is_stored(
    page: Any, example_app: FastAPI, serve: Callable[[FastAPI], Any], watched: Any
) -> None:
    watched.allowed.append("422")
    site = serve(example_app)
    page.goto(site.login)
    page.goto(f"{site.url}/ask")
    page.get_by_label("Question", exact=True).fill("Will it snow in Bergen by Christmas 2026?")
    page.get_by_label("Name of another model").fill("openai:unheard-of")
    expect(page.locator("#estimate")).to_contain_text("Price not known")
    page.get_by_role("button", name="Research it").click()
    price = page.get_by_label("Price of this model")
    expect(price).to_be_focused()
    expect(page.get_by_label("Question", exact=True)).to_have_value("Will it snow in Bergen by Christmas 2026?")
    assert not page.request.get(f"{site.url}/api/find?words=Bergen").json()["questions"]
    price.fill("0.5/2")
    page.get_by_role("button", name="Research it").click()
    expect(page.get_by_role("heading", name="Will it snow in Bergen by Christmas 2026?")).to_be_visible()
    expect(page.locator("#probability")).to_contain_text("%")
    page.get_by_label("Search questions, runs, trees").fill("bergen")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Will it snow in Bergen by Christmas 2026?").first).to_be_visible()
