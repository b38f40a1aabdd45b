"""The page of a tree: what-if in the browser equals Python, on desktop and phone, by mouse and by keyboard."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.forecasters.tree.stated import NEEDED, needed, tree_by_cases

from fakes.models import BackgroundModels
from foretell.api import show_tree
from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.arithmetic.sensitivity import tornado
from foretell.forecasters.tree.case_links import SplitLink
from foretell.forecasters.tree.edits import Scenario, SetP
from foretell.forecasters.tree.links import LinearLink, NoisyOrLink
from foretell.forecasters.tree.parts import closing_numbers
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree, TreeOrigin
from foretell.forecasters.tree.tree_file import read_tree_file, write_tree
from foretell.forecasters.tree.what_if import apply_scenario, what_if
from foretell.number_text import brief_percent, percent
from foretell.practice.example import example_tree
from foretell.questions.forecast import Reconciliation
from foretell.runs.settings import Settings
from foretell.web.app import create_app

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCRIPT = "<script>document.title='owned'</script>"


@pytest.fixture
def trees(settings: Settings) -> Path:
    """Copy the two example trees into the home."""
    folder = settings.home / "trees"
    folder.mkdir(parents=True)
    for path in EXAMPLES.glob("*.json"):
        shutil.copy(path, folder / path.name)
    return folder


def _answer(page: Any) -> float:
    return float(page.locator("#answer").get_attribute("data-value"))


def _set(page: Any, id: str, p: float) -> None:
    page.locator(f'[data-exact="{id}"]').fill(f"{100 * p:.12g}")  # In percent, as all numbers of the page.


def test_moving_leaves_equals_python(trees: Path, site: Any, page: Any):
    tree = read_tree_file(trees / "nvda.json").tree
    page.goto(f"{site.url}/trees/view/nvda")
    page.locator("#tools").wait_for()
    assert abs(_answer(page) - (tree.nodes["P0"].p or 0)) < 1e-12
    leaves = [id for id, node in tree.nodes.items() if not node.children][:4]
    edits = {id: round(0.07 + 0.2 * n, 3) for n, id in enumerate(leaves)}
    for id, p in edits.items():
        _set(page, id, p)
    expected = apply_scenario(tree, Scenario(name="s", edits=tuple(SetP(id=id, p=p) for id, p in edits.items())))
    assert abs(_answer(page) - expected.p) < 1e-9
    expect(page.locator("#shift")).to_contain_text("points", use_inner_text=True)
    page.locator("#reset").click()
    assert abs(_answer(page) - (tree.nodes["P0"].p or 0)) < 1e-12


def test_scenarios_that_exclude_each_other_share_the_rest(settings: Settings, site: Any, page: Any):
    then = {"P1": (0.78, 0.22), "P2": (0.22, 0.78)}
    top = Proposition(id="P0", claim="Who wins?", children=tuple(then), link=SplitLink(options=("A", "B"), then=then))
    scenarios = {id: Proposition(id=id, claim=f"Scenario {id}.", p=p) for id, p in (("P1", 0.6), ("P2", 0.3))}
    tree = evaluated(Tree(root="P0", nodes={"P0": top, **scenarios}))
    (settings.home / "trees").mkdir(parents=True)
    write_tree(settings.home / "trees" / "split.json", tree)
    page.goto(f"{site.url}/trees/view/split")
    page.locator("#tools").wait_for()
    for p in (0.5, 1.0, 0.2):
        _set(page, "P2", p)
        assert abs(_answer(page) - what_if(tree, {"P2": p}).p) < 1e-12
        assert abs(float(page.locator('[data-exact="P1"]').input_value()) / 100 - 0.6 * (1 - p) / 0.7) < 1e-6


def test_claim_by_cases_is_played_and_read(settings: Settings, site: Any, page: Any):
    both = Reconciliation(
        tree={"yes": 0.197}, direct={"yes": 0.12}, gap=0.6, asked=True, changes=("P4 90 % → 85 % (late ramp)",)
    )
    grown = evaluated(tree_by_cases(needed(), NEEDED))
    tree = replace(grown, origin=TreeOrigin(question="Will it open?", reconciliation=both))
    (settings.home / "trees").mkdir(parents=True)
    write_tree(settings.home / "trees" / "cases.json", tree)
    page.goto(f"{site.url}/trees/view/cases")
    page.locator("#tools").wait_for()
    expect(page.locator("#both")).to_have_text("Four conditions in sequence: tree 20 %, direct 12 % (agree)")
    expect(page.locator('.claim[data-claim="P0"] .kindline')).to_have_text("four conditions in sequence")
    expect(page.locator('.claim[data-claim="P2"] .then')).to_have_text("then 69 %")
    expect(page.locator("#panel")).to_contain_text("P4 90 % → 85 % (late ramp)")
    page.locator('.claim[data-claim="P0"] [data-pick]').first.click()
    rows = page.locator("#panel .cases tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.nth(1)).to_contain_text("only P1 fails")
    expect(rows.nth(1)).to_contain_text("5 %")
    for id, p in (("P3", 0.0), ("P3", 1.0), ("P4", 0.95), ("P3", 0.3)):
        _set(page, id, p)
        edits = {"P3": p} if id == "P3" and p != 0.3 else {"P3": 1.0, "P4": 0.95} if id == "P4" else {"P4": 0.95}
        assert abs(_answer(page) - what_if(tree, edits).p) < 1e-12
    expect(page.locator('.claim[data-claim="P2"] .then')).to_be_hidden()
    certain = brief_percent(what_if(tree, {"P4": 0.95, "P3": 1.0}).p)
    expect(page.locator("#panel [data-part=below]")).to_contain_text(f"certain {certain}")
    page.locator("#reset").click()
    expect(page.locator('.claim[data-claim="P2"] .then')).to_be_visible()
    page.locator('#panel [data-case="P0:all"]').fill("50")
    _set(page, "P4", 0.95)
    played = what_if(tree, {"P4": 0.95, "P0:all": 0.5}).p
    expect(page.locator("#answer")).to_have_text(percent(played))
    assert abs(_answer(page) - played) < 1e-12
    page.locator("#reset").click()
    assert abs(_answer(page) - (tree.nodes["P0"].p or 0)) < 1e-12


def test_a_claim_page_lists_checks_and_what_would_close_the_gap(settings: Settings, client: TestClient):
    both = Reconciliation(tree={"yes": 0.197}, direct={"yes": 0.05}, gap=1.5, asked=True, apart=True)
    grown = evaluated(tree_by_cases(needed(), NEEDED))
    (settings.home / "trees").mkdir(parents=True)
    tree = replace(grown, origin=TreeOrigin(question="Will it open?", reconciliation=both))
    write_tree(settings.home / "trees" / "cases.json", tree)
    plain = client.get("/trees/claim/P0/cases").text
    assert plain.count("passed</span>") == 8
    assert "To agree it alone would have to be" in plain
    needed_p = closing_numbers(tree)["P3"]
    assert needed_p is not None
    assert f"would have to be <strong>{brief_percent(needed_p)}</strong>" in plain
    assert what_if(tree, {"P3": needed_p}).p == pytest.approx(0.05, abs=1e-6)
    changed = client.get("/trees/claim/P0/cases", params={"P0:all": "0.5", "P0:none": "0", "P0:given:P2": "0.95"}).text
    expected = what_if(tree, {"P0:all": 0.5, "P0:given:P2": 0.95}).p
    assert f'<span class="big">{percent(expected)}</span>' in changed
    assert "1 problem" in changed, "the chance of P2 after P1 is impossible"
    assert client.get("/trees/claim/P0/cases", params={"P0:any": "0.5"}).status_code == 422
    ops = client.get("/api/tree/view/cases", params={"set": "P0:all=0.5"}).json()
    assert ops["p"] == pytest.approx(what_if(tree, {"P0:all": 0.5}).p)


def test_what_would_change_the_answer_follows_the_what_if(trees: Path, site: Any, page: Any):
    tree, address = read_tree_file(trees / "central_bank.json").tree, f"{site.url}/trees/view/central_bank"
    rows = page.locator("#slopes [data-input]")

    def order() -> list[str]:
        return [row.get_attribute("data-input") for row in rows.all()]

    page.goto(address)
    page.locator("#axis text").first.wait_for()
    served = re.findall(r"<strong data-now>(.*?)</strong>", page.request.get(address, max_retries=3).text())
    assert rows.locator("[data-now]").all_inner_texts() == served, "the page rounds as the server does"
    assert order() == [bar.id for bar in tornado(tree)]
    expect(page.locator("#says")).to_contain_text("It depends most on P2.1 ")
    _set(page, "P2.1", 0.98)
    after = apply_scenario(tree, Scenario(name="s", edits=(SetP(id="P2.1", p=0.98),))).tree
    expected = tornado(after)
    expect(rows.first).to_have_attribute("data-input", expected[0].id)
    assert order() == [bar.id for bar in expected]
    ends = f"({100 * expected[0].at_high:.0f} % if true, {100 * expected[0].at_low:.0f} % if false)"
    expect(page.locator("#says")).to_have_text(f"It depends most on {expected[0].id} {expected[0].claim} {ends}")
    expect(page.locator("#axis")).to_contain_text(f"now {100 * (after.nodes['P0'].p or 0):.0f} %")
    page.locator("#says a").click()
    assert page.evaluate("document.activeElement.dataset.set") == expected[0].id


def test_panel_uses_the_numbers_of_the_what_if(trees: Path, site: Any, page: Any):
    tree = read_tree_file(trees / "nvda.json").tree
    leaf = next(bar.id for bar in tornado(tree) if bar.id in tree.nodes)
    page.goto(f"{site.url}/trees/view/nvda")
    page.locator(f'[data-claim="{leaf}"] .id').click()
    counts, reads = page.locator("#panel [data-part=counts]"), page.locator("#panel [data-part=reads]")
    expect(counts).not_to_contain_text("what-if")
    for p in (0.9, 0.1):
        _set(page, leaf, p)
        expect(reads).to_contain_text(f"{100 * p:.0f} %")
        expect(counts).to_contain_text("in this what-if")
        expect(counts.locator("strong").last).to_have_text(page.locator("#answer").inner_text())
    _set(page, leaf, 0.3)
    page.locator("#panel [data-part=counts] a").first.click()  # Another claim, in the same what-if.
    expect(page.locator("#panel [data-part=below]")).to_contain_text("30 %")
    page.locator("#reset").click()
    expect(page.locator("#panel [data-part=below]")).not_to_contain_text("30 %")


def test_holding_a_claim_equals_python(trees: Path, site: Any, page: Any):
    tree = read_tree_file(trees / "nvda.json").tree
    page.goto(f"{site.url}/trees/view/nvda")
    page.locator("#tools").wait_for()
    id = page.locator("[data-pin]").nth(1).get_attribute("data-pin")
    page.locator(f'[data-held="{id}"]').fill("25")
    expected = apply_scenario(tree, Scenario(name="s", edits=(SetP(id=id, p=0.25),)))
    assert abs(_answer(page) - expected.p) < 1e-9
    page.locator(f'[data-pin="{id}"]').uncheck()
    assert abs(_answer(page) - (tree.nodes["P0"].p or 0)) < 1e-12


def test_scenarios_are_played_and_saved(trees: Path, site: Any, page: Any):
    file = read_tree_file(trees / "central_bank.json")
    name, scenario = next(iter(file.scenarios.items()))
    page.goto(site.login)
    page.goto(f"{site.url}/trees/view/central_bank")
    row = page.get_by_role("row", name=name)
    row.get_by_role("button", name="Play").click()
    assert abs(_answer(page) - apply_scenario(file.tree, scenario).p) < 1e-9
    page.locator("#scenario").fill("mine")
    page.get_by_role("button", name="Save the scenario").click()
    expect(page.get_by_role("row", name="mine")).to_be_visible()
    tree_file = read_tree_file(trees / "central_bank.json")
    assert apply_scenario(tree_file.tree, tree_file.scenarios["mine"]).p == pytest.approx(
        apply_scenario(file.tree, scenario).p, abs=1e-12
    )


def test_tree_is_used_by_keyboard(trees: Path, site: Any, page: Any):
    page.goto(f"{site.url}/trees/view/nvda")
    slider = page.locator("[data-set]").first
    slider.focus()
    before = _answer(page)
    page.keyboard.press("Home")
    assert _answer(page) != before
    fold = page.locator(".fold").nth(1)
    fold.focus()
    hidden = page.locator(".claim[hidden]").count()
    page.keyboard.press("Enter")
    assert page.locator(".claim[hidden]").count() > hidden
    assert fold.get_attribute("aria-expanded") == "false"


def test_a_phone_shows_an_outline(trees: Path, site: Any, phone: Any):
    phone.goto(f"{site.url}/trees/view/nvda")
    phone.locator("#tools").wait_for()
    expect(phone.locator(".canvas.graph")).to_have_count(0)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 375
    before = _answer(phone)
    phone.locator("[data-set]").first.fill("0")
    assert _answer(phone) != before


def test_switch_between_graph_and_outline(trees: Path, site: Any, page: Any):
    page.goto(f"{site.url}/trees/view/nvda")
    page.locator(".canvas.graph").wait_for()
    drawn = page.eval_on_selector_all(
        "#links path", "all => all.map(one => one.getAttribute('d').split('C').length - 1)"
    )
    assert sum(drawn) >= page.locator(".claim:not([hidden])").count() - 1
    _no_overlap(page)
    page.locator("#outline").click()
    expect(page.locator(".canvas.graph")).to_have_count(0)


def _big(count: int) -> Tree:
    """Return a tree with this number of claims, ten below each."""
    nodes: dict[str, Proposition] = {}
    for n in range(count):
        children = tuple(f"P{c}" for c in range(10 * n + 1, 10 * n + 11) if c < count)
        link = LinearLink(weights=dict.fromkeys(children, 0.9 / len(children))) if children and n % 2 else None
        link = link or (NoisyOrLink(strengths=dict.fromkeys(children, 0.3)) if children else None)
        p = None if children else (n % 97) / 100
        nodes[f"P{n}"] = Proposition(id=f"P{n}", claim=f"Claim number {n}", children=children, link=link, p=p)
    return Tree(root="P0", nodes=nodes)


def test_tree_of_a_thousand_claims(settings: Settings, site: Any, page: Any):
    tree = _big(1000)
    (settings.home / "trees").mkdir(parents=True)
    write_tree(settings.home / "trees" / "big.json", tree)
    tree = read_tree_file(settings.home / "trees" / "big.json").tree
    page.goto(f"{site.url}/trees/view/big")
    page.locator("#tools").wait_for()
    expect(page.locator(".claim:not([hidden])")).to_have_count(11)  # Collapsed below the first level.
    page.evaluate("""() => { const box = document.querySelector('[data-exact="P999"]'); box.value = '50';
        box.dispatchEvent(new Event('input')); }""")
    assert abs(_answer(page) - apply_scenario(tree, Scenario(name="s", edits=(SetP(id="P999", p=0.5),))).p) < 1e-9


def test_claims_notebooks_and_hostile_words(settings: Settings, site: Any, page: Any):
    folder = settings.home / "trees" / "run"
    folder.mkdir(parents=True)
    cell_list = [
        {"cell_type": "markdown", "source": ["# Look\n", SCRIPT]},
        {
            "cell_type": "code",
            "source": f"print('{SCRIPT}')",
            "outputs": [
                {"output_type": "stream", "text": [SCRIPT]},
                {"output_type": "display_data", "data": {"image/png": PIXEL, "text/html": SCRIPT}},
                {"output_type": "display_data", "data": {"image/png": "PHN2Zz4=", "text/plain": "not a picture"}},
                {"output_type": "error", "traceback": ["\x1b[31mValueError\x1b[0m: no"]},
            ],
            "metadata": {"foretell": {"failed_versions": [{"source": "first try", "outputs": []}]}},
        },
        {"cell_type": "code", "source": "the way to the data", "metadata": {"jupyter": {"source_hidden": True}}},
    ]
    (folder / "P1.data.json").write_text("[]")  # Data files of the notebook are not trees.
    (folder / "P1.ipynb").write_text(
        json.dumps({"cells": cell_list, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
    )
    grounding = Grounding(
        grounder="notebook",
        report=f"**Because** {SCRIPT} [x](javascript:alert(1))",
        sources=("https://news.example/a", "javascript:alert(1)"),
        notebook="P1.ipynb",
    )
    leaf = Proposition(id="P1", claim=f"Leaf {SCRIPT} \u202etxet", p=0.4, grounding=grounding)
    top = Proposition(id="P0", claim=f"Top {SCRIPT}", children=("P1",), link=LinearLink(weights={"P1": 0.9}))
    write_tree(folder / "q.json", Tree(root="P0", nodes={"P0": top, "P1": leaf}))
    page.goto(f"{site.url}/trees")
    expect(page.locator("caption")).to_have_text("1 tree")
    page.get_by_role("link", name="Top").click()
    page.get_by_role("link", name="the evidence for P1").click()
    expect(page.locator("strong", has_text="Because")).to_have_count(1)
    expect(page.locator("a[href^='javascript:']")).to_have_count(0)
    page.get_by_role("link", name="The notebook").click()
    expect(page.locator("img")).to_have_count(1)
    assert page.locator("img").evaluate("image => image.naturalWidth") == 1
    expect(page.locator("main")).to_contain_text("not a picture", use_inner_text=True)
    for summary, inside in (("1 earlier version failed", "first try"), ("Setup", "the way to the data")):
        expect(page.get_by_text(inside)).to_be_hidden()
        page.get_by_text(summary).click()
        expect(page.get_by_text(inside)).to_be_visible()
    assert "\x1b" not in page.content()
    assert "owned" not in page.title()


def test_what_if_is_changed_saved_and_shared_in_four_clicks(trees: Path, site: Any, open_page: Callable[..., Any]):
    page = open_page(viewport={"width": 1280, "height": 900}, permissions=["clipboard-read", "clipboard-write"])
    page.goto(site.login)
    page.goto(f"{site.url}/trees/view/nvda")
    clicks = 0

    def click(locator: Any) -> None:
        nonlocal clicks
        clicks += 1
        locator.click()

    change_text = "P1.1.1 Spending on computing for generative AI… 90 → 99.0 %"
    click(page.locator('[data-set="P1.1.1"]'))
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#sets-shown")).to_have_text(change_text)
    expected, before = _answer(page), page.url
    click(page.get_by_role("button", name="Save the scenario"))
    expect(page.get_by_role("row", name="P1.1.1 99.0 %")).to_be_visible()
    expect(page.locator("#sets-shown")).to_have_text(change_text)
    assert page.url == f"{before.partition('#')[0]}#version=0&set=P1.1.1=0.99"
    assert _answer(page) == expected, "the saved scenario is still shown"
    click(page.get_by_role("button", name="Copy link to this what-if"))
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert clicks <= 4
    with page.expect_download() as got:
        page.locator("#tornado-csv").click()
    table = Path(got.value.path()).read_text(encoding="utf-8").splitlines()
    assert table[0] == "id,claim,p,if_false,if_true"
    assert any(line.startswith("P1.1.1,") and ",0.99," in line for line in table)
    for kind, head in (("svg", b"<svg xmlns="), ("png", b"\x89PNG")):
        with page.expect_download() as got:
            page.locator(f"[data-tornado={kind}]").click()
        assert Path(got.value.path()).read_bytes().startswith(head)
    other = open_page(viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True)
    other.goto(link)
    expect(other.locator("#sets-shown")).to_have_text(change_text)
    assert _answer(other) == expected
    tree = read_tree_file(trees / "nvda.json").tree
    assert expected == apply_scenario(tree, Scenario(name="s", edits=(SetP(id="P1.1.1", p=0.99),))).p
    page.get_by_text("Keep it for good").click()
    page.locator("#keep-author").fill("ann")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_role("link", name="Version 2", exact=True)).to_be_visible()
    assert read_tree_file(trees / "nvda.json").tree.nodes["P0"].p == expected


def test_link_to_another_version_is_noted(trees: Path, site: Any, page: Any):
    page.goto(f"{site.url}/trees/view/nvda#version=7&set=P1=0.2,P9=0.5,{quote(SCRIPT)}=0.1,P1.1.1=7")
    expect(page.locator("#said")).to_contain_text("made for version 7")
    expect(page.locator("#said")).to_contain_text(f"P9=0.5, {SCRIPT}=0.1, P1.1.1=7")
    expect(page.locator("#sets-shown")).to_have_text("P1 NVIDIA's total return over the coming t… 79 → 20 %")
    assert "owned" not in page.title()


def test_a_tree_of_four_levels_opens_whole_beside_its_panel(trees: Path, site: Any, page: Any):
    (trees / "four_levels.json").write_text(example_tree(), encoding="utf-8")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{site.url}/trees/view/four_levels")
    expect(page.locator("#minimap")).to_be_hidden()
    room = page.locator("#canvas").bounding_box()
    boxes = [card.bounding_box() for card in page.locator(".claim:not([hidden]):not(.again)").all()]
    assert max(box["x"] + box["width"] for box in boxes) <= room["x"] + room["width"]


def test_tree_is_fitted_zoomed_and_moved(trees: Path, site: Any, page: Any):
    page.goto(f"{site.url}/trees/view/nvda")
    canvas = page.locator("#canvas")
    page.locator("#in").click(click_count=4)
    expect(page.locator("#minimap")).to_be_visible()
    page.locator("#fit").click()
    expect(page.locator("#minimap")).to_be_hidden()
    room = canvas.bounding_box()
    boxes = [card.bounding_box() for card in page.locator(".claim:not([hidden]):not(.again)").all()]
    assert len(boxes) == 26
    for box in boxes:
        assert room["x"] <= box["x"] <= box["x"] + box["width"] <= room["x"] + room["width"]
        assert room["y"] <= box["y"] <= box["y"] + box["height"] <= room["y"] + room["height"]
    fitted = page.locator("#scale").inner_text()
    canvas.focus()
    page.keyboard.press("+")
    expect(page.locator("#scale")).not_to_have_text(fitted)
    page.keyboard.press("0")
    expect(page.locator("#scale")).to_have_text(fitted)
    page.mouse.move(room["x"] + 300, room["y"] + 200)
    page.mouse.wheel(0, -300)
    expect(page.locator("#scale")).not_to_have_text(fitted)
    page.locator(".fold").nth(1).click()
    _no_overlap(page)


def _no_overlap(page: Any) -> None:
    boxes = [card.bounding_box() for card in page.locator(".claim:not([hidden]):not(.again)").all()]
    for n, box in enumerate(boxes):
        for other in boxes[:n]:
            apart = box["x"] + box["width"] <= other["x"] or other["x"] + other["width"] <= box["x"]
            assert apart or box["y"] + box["height"] <= other["y"] or other["y"] + other["height"] <= box["y"]


@pytest.fixture
def keyed(trees: Path, settings: Settings) -> Iterator[tuple[Settings, BackgroundModels]]:
    """Return the home with the example trees, and a local fake model that can work on them."""
    with BackgroundModels(script="foretell.practice.models.scripts:tree_script") as fake:
        keys, addresses = {"OPENAI_API_KEY": "sk-canary"}, {"openai": f"{fake.url}/v1"}
        yield replace(settings, keys=keys, addresses=addresses), fake


def test_claim_is_edited_researched_and_judged_again_in_the_page(
    keyed: tuple[Settings, BackgroundModels], token: str, serve: Callable[..., Any], page: Any
):
    settings, fake = keyed
    site = serve(create_app(settings, token=token))
    page.goto(site.login)
    page.goto(f"{site.url}/trees/view/central_bank")
    page.locator('#canvas [data-pick="P2.3"]').first.click()
    page.get_by_text("Edit this claim").click()
    page.locator("#statement").fill(f"Parliament spends more. {SCRIPT}")
    page.locator("#author").fill("ann")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.locator('[data-claim="P2.3"] .badge.stale')).to_be_visible()
    expect(page.locator('[data-claim="P2"] .badge.stale')).to_be_visible()
    expect(page.locator("#panel")).to_contain_text("Its probability belongs to the old wording")
    page.get_by_role("link", name="Research again").click()
    page.locator("#model").fill("openai:gpt-5-mini")
    page.locator("#grounder").select_option("plain")
    page.locator("#trials").fill("2")
    page.get_by_role("button", name="See plan and price").click()
    expect(page.locator("#panel")).to_contain_text("About 3 calls, about $")
    assert fake.stats()["billed"] == {}, "a plan makes no calls"
    page.get_by_role("button", name="Do it for about").click()
    expect(page.locator("#panel")).to_contain_text("Done: 3 calls, $")
    page.get_by_role("link", name="Show the tree as it is now").click()
    expect(page.locator('[data-claim="P2.3"] .proof')).to_have_text("plain · 2 trials")
    # The legend also has such a badge, until the panel shows a claim.
    expect(page.locator("[data-claim] .badge.stale")).to_have_count(0)
    assert "owned" not in page.title()
    page.goto(f"{site.url}/trees/history/central_bank")
    page.get_by_label("From version 1").check()
    page.get_by_role("button", name="Compare the two").click()
    expect(page.locator("ins", has_text="Parliament spends more.")).to_have_count(1)
    expect(page.locator("tbody").first).to_contain_text("ann")
    page.locator("#version").fill("1")
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator("tbody").first).to_contain_text("back to version 1")
    assert read_tree_file(settings.home / "trees" / "central_bank.json").tree.nodes["P2.3"].p == 0.2


def test_tree_update_over_the_api(keyed: tuple[Settings, BackgroundModels], token: str):
    settings, fake = keyed
    trusted = {"Authorization": f"Bearer {token}"}
    fields = {"model": "openai:gpt-5-mini", "search": ["none"], "grounder": "plain"}
    with TestClient(create_app(settings, token=token), base_url="http://127.0.0.1", headers=trusted) as client:

        def done(answer: Any) -> dict[str, Any]:
            work = answer.json()
            while work["state"] == "running":
                work = client.get(f"/api/tree/job/{work['work']}").json()
            return work

        wish = {**fields, "expand": "P2.1", "set": {"options.leaves": 3}}
        plan = client.post("/api/tree/update/nvda", json={**wish, "plan": True}).json()
        assert plan["calls"] > 3
        assert fake.stats()["billed"] == {}
        apart = done(client.post("/api/tree/update/nvda", json=wish))
        assert apart["state"] == "ended"
        assert any("P2.1 broken down into P2.1.1" in line for line in apart["log"])
        assert apart["result"]["version"] == 2
        assert read_tree_file(settings.home / "trees" / "nvda.json").tree.nodes["P2.1"].children
        # After a concurrent edit, nothing is asked, paid or written, and the conflict is reported.
        late = done(client.post("/api/tree/update/nvda", json={**fields, "claims": ["P2.2"], "base_version": 1}))
        assert (late["state"], late["calls"], late["result"]) == ("error", 0, None)
        assert "is at version 2, not at 1" in late["error"]
        nokey = done(client.post("/api/tree/update/nvda", json={**fields, "claims": ["P2.2"], "model": "anthropic:x"}))
        assert "ANTHROPIC_API_KEY" in nokey["error"]
        text = client.get("/trees/update/nvda", params={"job": nokey["work"]}).text
        assert "It failed. The tree has not changed" in text
        parent = client.post("/api/tree/update/nvda", json={**fields, "claims": ["P9"], "plan": True})
        assert (parent.status_code, "not in the tree" in parent.json()["detail"]) == (422, True)
        unsafe = client.post("/api/tree/update/nvda", json={**fields, "set": {"options.unsandboxed": True}})
        assert (unsafe.status_code, "in a sandbox" in unsafe.json()["detail"]) == (422, True)
        assert client.get("/api/tree/job/nobody").status_code == 404
        assert client.post("/api/tree/update/nvda", json={"stop": "nobody"}).status_code == 404
        assert client.post("/api/tree/update/nvda", json={"stop": nokey["work"]}).json()["state"] == "error"
        alone = client.post("/api/tree/update/nvda", json={**fields, "stop": nokey["work"]})
        assert (alone.status_code, "cannot be combined" in alone.json()["detail"]) == (422, True)
        back = client.post("/api/tree/edit/nvda", json={"restore": 1, "author": "bob"}).json()
        versions = client.get("/api/tree/log/nvda").json()["versions"]
        assert (back["version"], versions[-1]["author"]) == (3, "bob")
        both = client.post("/api/tree/edit/nvda", json={"restore": 1, "set": {"P2": 0.5}})
        assert (both.status_code, "cannot be combined with" in both.json()["detail"]) == (422, True)
        for path in ("update", "edit"):
            refused = client.post(f"/api/tree/{path}/nvda", json={}, headers={"Authorization": ""})
            assert refused.status_code == 401


def test_tree_api(trees: Path, client: TestClient, token: str):
    assert sorted(tree["name"] for tree in client.get("/api/trees").json()["trees"]) == ["central_bank", "nvda"]
    tree = read_tree_file(trees / "nvda.json").tree
    leaf = next(id for id, node in tree.nodes.items() if not node.children)
    result = client.post("/api/tree/whatif/nvda", json={"set": {leaf: 0}}).json()
    assert result["scenarios"][0]["p"] == pytest.approx(
        apply_scenario(tree, Scenario(name="s", edits=(SetP(id=leaf, p=0.0),))).p, abs=1e-12
    )
    for form in ("problog", "bif", "dot", "markdown", "html", "json"):
        assert client.get(f"/api/tree/export/{form}/central_bank").status_code == 200
    result_tree = show_tree(trees / "nvda.json", inputs=True)
    assert leaf in result_tree.to_svg()
    for bad in ("P1", {"P1": "x"}, {"nobody": 0.5}, {"P1": 7}):
        assert client.post("/api/tree/whatif/nvda", json={"set": bad}).status_code == 422
    for path in ("/api/tree/view/nobody", "/api/tree/view/..%2f..%2fruns", "/api/tree/export/odd/nvda"):
        assert client.get(path).status_code == 404
    for path in ("/trees/claim/P99/nvda", "/trees/notebook/P1/nvda"):
        assert client.get(path).status_code == 404
    wish: dict[str, Any] = {"save": "s", "set": {leaf: 0.1}}
    assert client.post("/api/tree/whatif/nvda", json=wish).status_code == 401
    assert "s" not in read_tree_file(trees / "nvda.json").scenarios
    trusted = {"Authorization": f"Bearer {token}"}
    assert client.post("/api/tree/whatif/nvda", json=wish, headers=trusted).status_code == 200
    assert "s" in read_tree_file(trees / "nvda.json").scenarios


def test_a_claim_is_edited_and_its_versions_are_shown(trees: Path, client: TestClient, token: str):
    writer = client
    writer.get(f"/login?token={token}")
    token = writer.get("/trees/claim/P2.1/nvda").text.split('name="csrf" value="')[1].split('"')[0]
    form = {
        "csrf": token,
        "statement": "Chips of rivals stay behind until 2027.",
        "author": "ann",
        "message": "<b>news</b>",
    }
    saved = writer.post("/trees/edit/P2.1/nvda", data=form, follow_redirects=False)
    assert saved.status_code == 303
    assert "Stale: its statement was changed" in writer.get("/trees/claim/P2.1/nvda").text
    tree = writer.get("/trees/view/nvda").text
    assert "Stale: P2 is stale: the statement of P2.1 was changed" in tree
    assert "2 versions" in tree
    plan = {"csrf": token, "model": "openai:gpt-5-mini"}
    assert "/trees/update/nvda" in tree
    planned = writer.post("/trees/update/nvda", data={**plan, "grounder": "plain"}).text
    assert "research by plain, about 1 call" in planned
    assert "judge the rule" in planned
    only_rules = writer.post("/trees/update/nvda", data={**plan, "grounder": "plain", "research": "no"}).text
    assert "research by" not in only_rules
    assert "no model is named" in writer.post("/trees/update/nvda", data={"csrf": token}).text
    page_text = writer.get("/trees/history/nvda").text
    assert "&lt;b&gt;news&lt;/b&gt;" in page_text
    assert "<ins>Chips of rivals stay behind until 2027.</ins>" in page_text
    # Concurrent edits: an edit of another claim is merged, one of the same claim is refused.
    ok = writer.post(
        "/trees/edit/P2.2/nvda", data={"csrf": token, "percent": "50", "base_version": "1"}, follow_redirects=False
    )
    assert ok.status_code == 303
    refused = writer.post(
        "/trees/edit/P2.1/nvda", data={"csrf": token, "percent": "50", "base_version": "1", "author": "bob"}
    )
    assert refused.status_code == 409
    assert "P2.1 by ann in version 2" in refused.text
    versions = writer.get("/api/tree/log/nvda").json()["versions"]
    assert [version["author"] for version in versions] == ["", "ann", "over the web"]
    sent = writer.post("/api/tree/edit/nvda", json={"set": {"P2.1": 0.4}}, headers={"x-csrf-token": token})
    assert sent.json()["version"] == 4
    file = writer.post("/api/tree/edit/nvda", json={"edits": "/etc/passwd"}, headers={"x-csrf-token": token})
    assert (file.status_code, "send the list itself" in file.json()["detail"]) == (422, True)
    assert client.get("/api/tree/log/nvda?start=1&end=2").json()["changes"][0]["id"] == "P2"


SHIFTS = """() => new Promise(done => { let sum = 0;
  new PerformanceObserver(list => { for (const one of list.getEntries()) sum += one.value; })
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(sum), 300); })"""


@pytest.mark.parametrize("width", [1440, 390])
def test_layout_does_not_shift_when_the_script_loads_late(trees: Path, site: Any, page: Any, width: int):
    page.set_viewport_size({"width": width, "height": 900})
    waiting: list[Any] = []

    def hold(route: Any) -> None:
        waiting.append(route)

    page.route("**/static/tree.js*", hold)
    page.goto(f"{site.url}/trees/view/nvda", wait_until="commit")
    expect(page.locator("footer")).to_be_visible()
    page.wait_for_timeout(500)
    assert waiting
    waiting[0].continue_()
    expect(page.locator("#tools")).to_be_visible()
    page.wait_for_timeout(300)
    assert page.evaluate(SHIFTS) < 0.05


def test_the_tree_shows_ranges_and_the_arithmetic_of_each_claim(settings: Settings, site: Any, page: Any):
    link = LinearLink(weights={"P1": 0.6, "P2": 0.2}, intercept=0.1)
    leaves = {
        id: Proposition(id=id, claim=f"Claim {id}.", p=p, grounding=Grounding(grounder="g", trials=trials))
        for id, p, trials in (("P1", 0.5, (0.4, 0.5, 0.6)), ("P2", 0.3, (0.2, 0.4)))
    }
    top = Proposition(id="P0", claim="The whole.", children=("P1", "P2"), link=link)
    tree = evaluated(Tree(root="P0", nodes={"P0": top, **leaves}))
    write_tree(settings.home / "trees" / "ranged.json", tree)
    bar = error_bar(tree)
    assert bar is not None
    page.goto(f"{site.url}/trees/view/ranged")
    page.locator("#tools").wait_for()
    root, leaf = page.locator('[data-claim="P0"]'), page.locator('[data-claim="P1"]')
    ends = [float(root.locator(".pbar .spread").first.get_attribute(name)[:-1]) / 100 for name in ("x1", "x2")]
    assert ends == pytest.approx([bar.low, bar.high])
    expect(leaf.locator(".range")).to_have_text("40–60")
    expect(root.locator(".sum")).to_have_text(re.compile(r"0\.1 \+ 0\.6 × 0\.5.*\+ 0\.2 × 0\.3.* = 0\.46"))
    expect(root.locator(".sum")).to_be_visible()
    _set(page, "P1", 0.9)  # The numbers above no longer apply.
    expect(root.locator(".sum")).to_be_hidden()
    expect(root.locator(".pbar .spread").first).to_be_hidden()
    page.locator("#reset").click()
    expect(root.locator(".sum")).to_be_visible()


def test_the_tree_is_computed_after_the_page_is_drawn(trees: Path, site: Any, page: Any):
    page.add_init_script("addEventListener('DOMContentLoaded', () => new MutationObserver((seen, own) => {"
                         " own.disconnect(); window.graphAt = performance.now(); }).observe("
                         "document.getElementById('canvas'), { attributeFilter: ['class'] }));")  # fmt: skip
    page.goto(f"{site.url}/trees/view/nvda")
    expect(page.locator("#tools")).to_be_visible()
    drawn = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert page.evaluate(f"[{drawn} < window.graphAt, document.getElementById('answer').textContent !== '']") == [
        True,
        True,
    ]
