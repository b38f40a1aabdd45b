"""The page of a tree: what-if in the browser equals Python, on a desk and on a phone, by mouse and by keyboard."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from foretell.forecasters.tree.edits import Scenario, SetP
from foretell.forecasters.tree.links import LinearLink, NoisyOrLink
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.tree_file import read_tree_file, write_tree
from foretell.forecasters.tree.what_if import apply_scenario
from foretell.runs.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCRIPT = "<script>document.title='owned'</script>"


@pytest.fixture
def trees(settings: Settings) -> Path:
    """The two example trees in the home."""
    folder = settings.home / "trees"
    folder.mkdir(parents=True)
    for path in EXAMPLES.glob("*.json"):
        shutil.copy(path, folder / path.name)
    return folder


def _answer(page: Any) -> float:
    return float(page.locator("#answer").get_attribute("data-value"))


def _set(page: Any, id: str, p: float) -> None:
    page.locator(f'[data-exact="{id}"]').fill(str(p))


def test_moving_leaves_equals_python(trees: Path, site: Any, page: Any):
    tree = read_tree_file(trees / "nvda.json").tree
    page.goto(f"{site.url}/trees/view/nvda")
    page.locator("#tools").wait_for()
    assert abs(_answer(page) - (tree.nodes["P0"].p or 0)) < 1e-12
    leaves = [id for id, node in tree.nodes.items() if not node.children][:4]
    edits = {id: round(0.07 + 0.2 * n, 3) for n, id in enumerate(leaves)}
    for id, p in edits.items():
        _set(page, id, p)
    wanted = apply_scenario(tree, Scenario(name="s", edits=tuple(SetP(id=id, p=p) for id, p in edits.items())))
    assert abs(_answer(page) - wanted.p) < 1e-9
    expect(page.locator("#moved")).to_contain_text("points", use_inner_text=True)
    expect(page.locator("#command")).to_contain_text(f"--set {leaves[0]}={edits[leaves[0]]:g}", use_inner_text=True)
    page.locator("#reset").click()
    assert abs(_answer(page) - (tree.nodes["P0"].p or 0)) < 1e-12


def test_holding_a_claim_equals_python(trees: Path, site: Any, page: Any):
    tree = read_tree_file(trees / "nvda.json").tree
    page.goto(f"{site.url}/trees/view/nvda")
    page.locator("#tools").wait_for()
    id = page.locator("[data-pin]").nth(1).get_attribute("data-pin")
    page.locator(f'[data-held="{id}"]').fill("0.25")
    wanted = apply_scenario(tree, Scenario(name="s", edits=(SetP(id=id, p=0.25),)))
    assert abs(_answer(page) - wanted.p) < 1e-9
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
    page.wait_for_url("**/trees/view/central_bank")
    kept = read_tree_file(trees / "central_bank.json")
    assert apply_scenario(kept.tree, kept.scenarios["mine"]).p == pytest.approx(
        apply_scenario(file.tree, scenario).p, abs=1e-12
    )


def test_keyboard(trees: Path, site: Any, page: Any):
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


def test_graph_and_outline(trees: Path, site: Any, page: Any):
    page.goto(f"{site.url}/trees/view/nvda")
    page.locator(".canvas.graph").wait_for()
    assert page.locator("#links path").count() >= page.locator(".claim:not([hidden])").count() - 1
    boxes = [card.bounding_box() for card in page.locator(".claim:not([hidden]):not(.again)").all()]
    for n, one in enumerate(boxes):
        for other in boxes[:n]:
            apart = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert apart or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    page.locator("#shape").click()
    expect(page.locator(".canvas.graph")).to_have_count(0)


def _big(count: int) -> Tree:
    """A tree of so many claims, ten below each."""
    nodes: dict[str, Proposition] = {}
    for n in range(count):
        children = tuple(f"P{c}" for c in range(10 * n + 1, 10 * n + 11) if c < count)
        link = LinearLink(weights=dict.fromkeys(children, 0.9 / len(children))) if children and n % 2 else None
        link = link or (NoisyOrLink(strengths=dict.fromkeys(children, 0.3)) if children else None)
        p = None if children else (n % 97) / 100
        nodes[f"P{n}"] = Proposition(id=f"P{n}", claim=f"Claim number {n}", children=children, link=link, p=p)
    return Tree(root="P0", nodes=nodes)


def test_a_thousand_claims(settings: Settings, site: Any, page: Any):
    tree = _big(1000)
    (settings.home / "trees").mkdir(parents=True)
    write_tree(settings.home / "trees" / "big.json", tree)
    tree = read_tree_file(settings.home / "trees" / "big.json").tree
    page.goto(f"{site.url}/trees/view/big")
    page.locator("#tools").wait_for()
    expect(page.locator(".claim:not([hidden])")).to_have_count(11)  # Folded below the first level.
    page.evaluate("""() => { const box = document.querySelector('[data-exact="P999"]'); box.value = '0.5';
        box.dispatchEvent(new Event('input')); }""")
    assert abs(_answer(page) - apply_scenario(tree, Scenario(name="s", edits=(SetP(id="P999", p=0.5),))).p) < 1e-9


def test_claims_notebooks_and_hostile_words(settings: Settings, site: Any, page: Any):
    folder = settings.home / "trees" / "run"
    folder.mkdir(parents=True)
    cells = [
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
        },
    ]
    (folder / "P1.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
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
    page.get_by_role("link", name="Top").click()
    page.get_by_role("link", name="the proof of P1").click()
    expect(page.locator("strong", has_text="Because")).to_have_count(1)
    expect(page.locator("a[href^='javascript:']")).to_have_count(0)
    page.get_by_role("link", name="The notebook").click()
    expect(page.locator("img")).to_have_count(1)
    assert page.locator("img").evaluate("image => image.naturalWidth") == 1
    expect(page.locator("main")).to_contain_text("not a picture", use_inner_text=True)
    assert "\x1b" not in page.content()
    assert "owned" not in page.title()


def test_api(trees: Path, client: TestClient, token: str):
    assert [tree["name"] for tree in client.get("/api/trees").json()["trees"]] == ["central_bank", "nvda"]
    tree = read_tree_file(trees / "nvda.json").tree
    leaf = next(id for id, node in tree.nodes.items() if not node.children)
    found = client.get("/api/tree/whatif/nvda", params={"set": [f"{leaf}=0"]}).json()
    assert found["scenarios"][0]["p"] == pytest.approx(
        apply_scenario(tree, Scenario(name="s", edits=(SetP(id=leaf, p=0.0),))).p, abs=1e-12
    )
    for form in ("problog", "mermaid", "markdown", "html", "json", "circuit"):
        assert client.get(f"/api/tree/export/{form}/central_bank").status_code == 200
    for bad in ("P1", "P1=x", "nobody=0.5", "P1=7"):
        assert client.get("/api/tree/whatif/nvda", params={"set": [bad]}).status_code == 422
    for gone in ("view/nobody", "view/..%2f..%2fruns", "claim/P99/nvda", "export/odd/nvda", "notebook/P1/nvda"):
        assert client.get(f"/api/tree/{gone}").status_code == 404
    wish: dict[str, Any] = {"scenario": "s", "set": [f"{leaf}=0.1"]}
    assert client.post("/api/tree/scenario/nvda", params=wish).status_code == 401
    trusted = {"Authorization": f"Bearer {token}"}
    assert client.post("/api/tree/scenario/nvda", params=wish, headers=trusted).status_code == 201
    assert "s" in read_tree_file(trees / "nvda.json").scenarios


def test_a_claim_is_edited_and_its_versions_are_shown(trees: Path, client: TestClient, token: str):
    writer = client
    writer.get(f"/login?token={token}")
    token = writer.get("/trees/claim/P2.1/nvda").text.split('name="csrf" value="')[1].split('"')[0]
    form = {"csrf": token, "statement": "Chips of rivals stay behind until 2027.", "who": "ann", "why": "<b>news</b>"}
    saved = writer.post("/trees/edit/P2.1/nvda", data=form, follow_redirects=False)
    assert saved.status_code == 303
    assert "Stale: its statement was changed" in writer.get("/trees/claim/P2.1/nvda").text
    tree = writer.get("/trees/view/nvda").text
    assert "Stale: P2 is stale: the statement of P2.1 was changed" in tree
    assert "2 versions" in tree
    shown = writer.get("/trees/history/nvda").text
    assert "&lt;b&gt;news&lt;/b&gt;" in shown
    assert "<ins>Chips of rivals stay behind until 2027.</ins>" in shown
    # Two people: one edit of another claim is kept beside it, one of the same claim is refused.
    ok = writer.post("/trees/edit/P2.2/nvda", data={"csrf": token, "p": "0.5", "base": "1"}, follow_redirects=False)
    assert ok.status_code == 303
    refused = writer.post("/trees/edit/P2.1/nvda", data={"csrf": token, "p": "0.5", "base": "1", "who": "bob"})
    assert refused.status_code == 409
    assert "P2.1 by ann in version 2" in refused.text
    versions = writer.get("/api/tree/history/nvda").json()["versions"]
    assert [one["who"] for one in versions] == ["", "ann", "over the web"]
    sent = writer.post("/api/tree/edit/nvda", json={"set": {"P2.1": 0.4}}, headers={"x-csrf-token": token})
    assert sent.json()["version"] == 4
    assert client.get("/api/tree/diff/nvda?start=1&end=2").json()["changes"][0]["id"] == "P2"
