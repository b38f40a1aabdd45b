"""Walks of a user in a real browser, from the first click to the last and back: trees, runs, comparisons, a watch."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.standing.made_record import MadeQuestion

from fakes.stored_run import StoredRunBuilder
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.questions.resolution import Resolution
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.standing.store import StandingStore

EXAMPLE = Path(__file__).parents[2] / "examples" / "trees" / "central_bank.json"


@pytest.fixture
def tree(settings: Settings) -> Path:
    """Copy an example tree into the home."""
    file = settings.home / "trees" / EXAMPLE.name
    file.parent.mkdir(parents=True)
    shutil.copy(EXAMPLE, file)
    return file


HANDLES = """() => [...document.querySelectorAll('#canvas .ruler:has(input)')].map(ruler => {
  const input = ruler.querySelector('input'), box = input.getBoundingClientRect();
  const size = 14 * box.width / input.offsetWidth;
  const handle = box.left + size / 2 + input.value * (box.width - size);
  return Math.abs(handle - ruler.querySelector('.fill').getBoundingClientRect().right);
})"""
"""How far each handle is from the end of its bar, in pixels."""


def test_a_claim_gets_a_number_and_a_child_and_the_old_tree_back(tree: Path, site: Any, page: Any) -> None:
    page.goto(site.login)
    page.goto(f"{site.url}/trees/view/{tree.stem}")
    page.locator("#tools").wait_for()
    assert max(page.evaluate(HANDLES)) < 1
    before = page.locator("#answer").inner_text()
    page.locator('#canvas [data-pick="P2.3"]').first.click()
    page.get_by_text("Edit this claim").click()
    page.get_by_label("Probability in percent").fill("64.5")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.locator('#canvas [data-p="P2.3"]')).to_have_text("64 %")  # 64.5 is rounded to the even digit.
    expect(page.locator("#answer")).not_to_have_text(before)
    assert read_tree_file(tree).tree.nodes["P2.3"].p == 0.645
    page.get_by_text("Edit this claim").click()
    page.get_by_label("A new claim under it").fill("Elections come early.")
    page.get_by_role("button", name="Save as a new version").click()
    child = page.locator(".claim", has_text="Elections come early.")
    expect(child.locator(".badge.open")).to_have_text("not grounded")
    page.goto(f"{site.url}/trees/history/{tree.stem}")
    expect(page.locator("caption, tbody").first).to_contain_text("P2.3")
    page.get_by_label("Version", exact=True).and_(page.locator("input")).fill("1")
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator("tbody").first).to_contain_text("back to version 1")
    page.get_by_role("link", name="The whole tree").click()
    expect(page.locator("#answer")).to_have_text(before)
    expect(child).to_have_count(0)


def resolved(store: RunStore, trials: int) -> str:
    """Store a run whose four questions have resolved; return its id."""
    builder = StoredRunBuilder(questions=4, trials=trials)
    run = builder.keep(store)
    outcomes = [
        Resolution(question_id=question.id, target_id="yes", due=question.due, outcome=n % 2)
        for n, question in enumerate(builder.asked())
    ]
    RunOutcomes(store).keep(run, builder.asked(), outcomes)
    return run


def test_two_runs_are_ticked_and_compared_and_a_third_is_found(store: RunStore, site: Any, page: Any) -> None:
    first, second, third = (resolved(store, trials) for trials in (1, 2, 3))
    page.goto(f"{site.url}/runs")
    for run in (first, second):
        page.locator(f"#run-{run}").get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("h1")).to_have_text(re.compile(r"agent \(.*\) and agent \(.*\)"))
    expect(page.locator(".lead").first).to_contain_text("4 ")
    expect(page.locator("#compare input[name=run]:checked")).to_have_count(2)
    differ = page.locator("section", has=page.get_by_role("heading", name="Where they differ")).locator("tbody tr")
    assert len(re.findall(r"\d %", differ.first.inner_text())) == 2, "probabilities are shown as on all pages, not 0.24"
    page.locator(f'#compare input[value="{third}"]').check()
    page.locator("#compare").get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_have_text("3 runs on one board")


def test_ticked_runs_are_deleted_and_come_back_from_the_bin(store: RunStore, site: Any, page: Any) -> None:
    runs = [StoredRunBuilder(questions=1, trials=trials).keep(store) for trials in (1, 2, 3)]
    page.goto(site.login)
    page.goto(f"{site.url}/runs")
    for run in runs[:2]:
        page.locator(f"#run-{run}").get_by_role("checkbox").check()
    page.locator("#selected").get_by_role("button", name="Delete").click()
    expect(page.locator("#undo")).to_contain_text("2 runs deleted.")
    expect(page.locator("tr[id^=run-]")).to_have_count(1)
    page.locator("#undo").get_by_role("link", name="Bin").click()
    expect(page.locator("h1")).to_have_text("Bin")
    expect(page.locator("tr[id^=run-]")).to_have_count(2)
    page.locator(f"#run-{runs[0]}").get_by_role("checkbox").check()
    page.get_by_role("button", name="Restore").click()
    page.goto(f"{site.url}/runs")
    expect(page.locator("tr[id^=run-]")).to_have_count(2)


def test_a_watched_question_is_paused_looked_at_ended_and_opened_again(store: RunStore, site: Any, phone: Any) -> None:
    standing = StandingStore(store.database)
    made = MadeQuestion(number=91, came=False, path=(0.3, 0.4), proposed=False)
    made.keep(standing, confirmed=False)
    phone.goto(site.login)
    phone.goto(f"{site.url}/record")
    phone.get_by_role("link", name=made.text).click()
    phone.get_by_role("button", name="Pause").click()
    expect(phone.locator("main")).to_contain_text("It is paused and not looked at.")
    phone.get_by_role("button", name="Watch it again").click()
    phone.get_by_role("button", name="Look now").click()
    expect(phone.locator("#next ~ .counts")).to_be_visible()
    assert [question.id for question, _ in standing.planned()] == [made.id]
    phone.get_by_role("button", name="No", exact=True).click()
    expect(phone.locator("#outcome")).to_contain_text("Outcome: No")
    assert standing.find(made.id).state == "resolved"
    phone.get_by_role("button", name="Withdraw the outcome").click()
    expect(phone.locator("#proposal")).to_contain_text("Do you know the outcome?")
    assert standing.find(made.id).state == "open"
