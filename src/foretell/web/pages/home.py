"""The home page and login."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from foretell.arena.listing import ArenaRow, arena_rows
from foretell.arena.store import ArenaStore
from foretell.forecasters.tree.exports import stale_parts, tree_failures
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.number_text import percent, plural
from foretell.operations.doctor import Finding, look_at_sandbox, look_at_setup
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.requests.tournaments import TournamentResultsRequest
from foretell.operations.tournament_results import score_tournaments
from foretell.questions.errors import InputError
from foretell.report.arena_report import arena_headline
from foretell.report.charts.rulers import belief_thumbnail, lines_thumbnail, score_thumbnail, tree_thumbnail
from foretell.report.charts.svg import Chart
from foretell.report.leaderboard import board_study
from foretell.request import environment_values
from foretell.scoring.arena_view import scores_over_time
from foretell.tournaments.ledger import LEDGER_FILE
from foretell.tournaments.sent import SentAnswer, sent_answers
from foretell.web.pages.ask import ask_form, model_keys
from foretell.web.pages.question import read_question
from foretell.web.rendering import html_page, link_to
from foretell.web.run_rows import RunRowView
from foretell.web.security import COOKIE, AccessRules, TokenRequired, access_of, form_of, has_token, visitor_of
from foretell.web.state import CurrentState, WebState

router = APIRouter()
NEWEST_RUNS = 8


def home(here: CurrentState) -> dict[str, Any]:
    """Return what is on this machine (runs, trees, arenas, tournaments), what is set up, and what to do next."""
    runs, arenas = here.run_list(RunsRequest(), limit=NEWEST_RUNS), arena_rows(here.store.database)
    changed = {path: path.stat().st_mtime_ns for path in (here.settings.home / "trees").rglob("*.json")}
    trees = sorted(changed, key=lambda path: changed[path], reverse=True)
    return {
        "runs": runs.runs,
        "run_count": runs.total,
        "trees": len(trees),
        "arenas": len(arenas),
        "example": here.settings.is_example,
        "setup": _setup(here),
        # Highlights are for the example only.
        "highlights": here.while_unchanged(
            ("highlights", *changed.items()),
            lambda: _highlights(here, runs.runs, trees, arenas),
        )
        if here.settings.is_example
        else [],
        "tournaments": _tournaments(here),
        # Runs, trees and arenas in one list, the newest first.
        "recent": _recent(here, runs.runs, trees, arenas),
        "unfinished": [run for run in runs.runs if run.state not in ("running", "done")],
        "providers": model_keys(here.settings)["providers"],
    }


BEING_CHECKED = "is being checked"
EXAMPLE_PARTS = ("model key", "search key")
EXAMPLE_KEYS = "not needed: practice services answer here"


def _setup(here: WebState) -> list[Finding]:
    """Return what `foretell doctor` says about keys, data, database and sandbox, at most a minute old."""
    minute = (time.monotonic() // 60,)
    findings = here.cached(("setup",), minute, lambda: list(look_at_setup(here.settings)))
    sandbox = sandbox_check()
    checked = sandbox.result() if sandbox.done() else Finding("sandbox", "optional", BEING_CHECKED)
    # Addresses and paths in error messages are only shown by `foretell doctor`.
    found = [replace(finding, detail=finding.detail.partition(": ")[0]) for finding in (*findings, checked)]
    return without_example_keys(found) if here.settings.is_example else found


def without_example_keys(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings that do not present the keys of the practice services as keys that somebody set."""
    return [
        replace(one, state="ok", detail=EXAMPLE_KEYS, advice="") if one.what in EXAMPLE_PARTS else one
        for one in findings
        if one.what != "keys" and not one.detail.startswith("not set: ")
    ]


PLATFORMS = {"forecastbench": "ForecastBench", "metaculus": "Metaculus", "prophet-arena": "Prophet Arena"}


def _tournaments(here: WebState) -> dict[str, Any]:
    """Return the rounds entered from here, newest first, and a sentence on each platform's scores.

    It uses the outcomes stored here: viewing a page requests none from elsewhere.
    """
    states = sorted((here.settings.home / "tournaments").glob("*/state.json"))
    if not states:
        return {"entered": (), "findings": {}}
    state = (*((str(path), path.stat().st_mtime_ns) for path in states), str(sorted(here.outcomes.count().items())))
    request, settings = TournamentResultsRequest(), replace(here.settings, network=False)
    results = here.boards.cached(("tournaments",), state, lambda: asyncio.run(score_tournaments(request, settings)))
    named = {PLATFORMS.get(platform, platform): result.board for platform, result in results.boards.items()}
    return {
        "entered": [{**vars(row), "platform": PLATFORMS.get(row.platform, row.platform)} for row in results.entered],
        "findings": {name: board_study(board, name).text for name, board in named.items()},
        "notes": results.notes,
    }


@cache
def sandbox_check() -> Future[Finding]:
    """Try the sandbox once per process, in the background, because that takes a second."""
    thread = ThreadPoolExecutor(1, "sandbox check")
    checked = thread.submit(lambda: asyncio.run(look_at_sandbox()))
    thread.shutdown(wait=False)
    return checked


@router.get("/", include_in_schema=False)
def show_home(request: Request, here: CurrentState, view: Annotated[dict[str, Any], Depends(home)]) -> Response:
    """Show the home page, with thumbnails of what can be opened; strangers do not see what is set up."""
    if not has_token(request, access_of(request)):
        view = {**view, "setup": [], "providers": []}
        sent: dict[str, list[SentAnswer]] = {}
    else:
        sent = {"": _sent(here, here.settings.home), "practice": _sent(here, here.settings.practice_home)}
    kinds = tuple((card["kind"], card["text"]) for card in view["highlights"])
    pictures = here.while_unchanged(("pictures", kinds), lambda: [_picture(here, card) for card in view["highlights"]])
    asks = visitor_of(request).may_write and (view["providers"] or environment_values(AskRequest).get("model"))
    ask = ask_form(here, {}) if asks else None
    return html_page(request, "home.html", view, pictures=pictures, ask=ask, sent=sent, page_of=here.page_of)


MOST_SENT = 12
"""Maximum number of forecasts listed as sent."""


def _sent(here: WebState, home: Path) -> list[SentAnswer]:
    """Return what was sent to tournaments from a home, read again when its ledger has grown."""
    path = home / LEDGER_FILE
    state = (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else ()
    return here.cached(("sent", home), state, lambda: sent_answers(home, MOST_SENT))


def _picture(here: WebState, card: Mapping[str, Any]) -> Chart | None:
    """Return the thumbnail that a card shows beside its sentence."""
    ids = card["ids"]
    match card["kind"]:
        case "run":
            score = card["score"]
            scores = {"this run": score["brier_index"], "market": score["price"], "base rate": score["base_rate"]}
            return score_thumbnail({
                name: (interval["estimate"], interval["low"], interval["high"])
                for name, interval in scores.items()
                if interval
            })  # fmt: skip
        case "question":
            question = read_question(here, ids[0], ids[1], card["due"])
            target, combination = question["question"]["targets"][0], question["combination"]
            if combination is None or len(question["question"]["targets"]) > 1:
                return None
            id = target["id"]
            paths = [[point["p"][id] for point in t["trace"]["path"] if id in point["p"]] for t in question["trials"]]
            return belief_thumbnail([path for path in paths if path], combination["p"][id], target["price"])
        case "tree":
            return tree_thumbnail(_levels(_newest(here.settings.home / "trees" / f"{ids[0]}.json")))
        case _:
            return _arena_picture(here, ids[0])


def _newest(path: Path) -> Tree:
    """Return a tree for reading only, cached as long as its file is unchanged."""
    info = path.stat()
    return _tree_of(path, info.st_mtime_ns, info.st_size)


@lru_cache(maxsize=16)
def _tree_of(path: Path, changed: int, size: int) -> Tree:
    return read_tree_file(path).tree


def _levels(tree: Tree) -> list[list[tuple[float | None, int]]]:
    """Return the claims of a tree by depth, each with its probability and the position of its parent."""
    levels: list[list[tuple[float | None, int]]] = []
    ids, parents = [tree.root], [0]
    while ids and len(levels) < MOST_LEVELS:
        levels.append([(tree.nodes[id].p, parent) for id, parent in zip(ids, parents, strict=True)])
        below = [(child, place) for place, id in enumerate(ids) for child in tree.nodes[id].children]
        ids, parents = [child for child, _ in below][:MOST_CLAIMS], [place for _, place in below][:MOST_CLAIMS]
    return levels


def _arena_picture(here: WebState, arena: str) -> Chart | None:
    report = here.boards.small(arena)
    if report is None:
        return None
    names = [line.entry.name for line in report.view.lines if line.rank]
    courses = scores_over_time(report.scored, names)
    plain = {name: [value for _, value in course] for name, course in courses.items()}
    return lines_thumbnail(plain, 3) if plain else None


MOST_LEVELS, MOST_CLAIMS = 4, 9


def _highlights(
    here: WebState, runs: Sequence[RunRowView], trees: Sequence[Path], arenas: Sequence[ArenaRow]
) -> list[dict[str, Any]]:
    """Select what to open first, with a sentence on each: a scored run, a researched answer, a tree, an arena."""
    highlights: list[dict[str, Any]] = []
    plain = [run for run in runs if not run.model and run.score.get("brier_index")]
    if best := max(plain or [run for run in runs if run.score.get("brier_index")], key=_index, default=None):
        score = best.score
        gaps = [
            f"{abs(gap):.1f} points {'better' if gap >= 0 else 'worse'} than {label}"
            for key, label in SCORES_BESIDE
            if score[key]
            for gap in [round(_index(best), 1) - round(float(score[key]["estimate"]), 1)]
        ]
        text = f"Brier index {_index(best):.1f} on {plural(score['decided'], 'resolved question')}"
        text += f": {' and '.join(gaps)}." if gaps else "."
        card = {"kind": "run", "title": "A scored backtest", "text": text, "name": best.called, "ids": [best.id]}
        highlights.append({**card, "score": score})
    if (answer := _researched(here, runs)) is not None:
        highlights.append(answer)
    for path in trees[:NEWEST_TREES]:
        try:
            tree = _newest(path)
        except InputError:
            continue
        root, name = tree.nodes[tree.root], path.relative_to(here.settings.home / "trees").with_suffix("").as_posix()
        text = f"{root.claim} {percent(root.p)}, from {plural(len(tree.nodes), 'claim')}."
        highlights.append({"kind": "tree", "title": "A claim broken down", "text": text, "name": name, "ids": [name]})
        break
    for arena in arenas[:1]:
        report, name = here.boards.small(arena.name), arena.name
        text = f"{plural(arena.events, 'event')}, {arena.settled} resolved: who is best?"
        text = f"{arena_headline(report.view)}." if report else text
        highlights.append({"kind": "arena", "title": "A live leaderboard", "text": text, "name": name, "ids": [name]})
    return highlights


def _recent(
    here: WebState, runs: Sequence[RunRowView], trees: Sequence[Path], arenas: Sequence[ArenaRow]
) -> list[dict[str, Any]]:
    """Return the most recent items: what each is, its state, its result in a few words, its cost and its date."""
    folder = here.settings.home / "trees"
    items = [
        *(_recent_run(here, run) for run in runs),
        *(recent_tree for path in trees[:MOST_RECENT] if (recent_tree := _recent_tree(path, folder)) is not None),
        *(_recent_arena(here, arena) for arena in arenas[:MOST_RECENT]),
    ]
    blank: dict[str, Any] = {"run": None, "state": "", "result": "", "cost": None}
    return [{**blank, **item} for item in sorted(items, key=lambda item: item["at"], reverse=True)[:MOST_RECENT]]


def _recent_run(here: WebState, run: RunRowView) -> dict[str, Any]:
    result = f"Brier index {_index(run):.1f}" if run.score.get("brier_index") else ""
    if (answer := here.only_answer(run)) is not None:
        result = percent(answer)
    what = "question" if run.questions == 1 else f"run, {plural(run.questions, 'question')}"
    cost = here.money(run.id).billed
    item = {"kind": "run", "id": run.id, "name": run.called, "what": what, "run": run, "result": result}
    return {**item, "cost": cost, "at": run.created}


def _recent_tree(path: Path, folder: Path) -> dict[str, Any] | None:
    try:
        tree = _newest(path)
    except InputError:
        return None
    root, name = tree.nodes[tree.root], path.relative_to(folder).with_suffix("").as_posix()
    failed, stale = len(tree_failures(tree)), len(stale_parts(tree))
    state = f"{failed} failed" if failed else f"{stale} out of date" if stale else "done"
    item = {"kind": "tree", "id": name, "name": root.claim, "what": f"tree, {plural(len(tree.nodes), 'claim')}"}
    cost = tree.origin.cost.dollars if tree.origin is not None else None
    return {**item, "state": state, "result": percent(root.p), "cost": cost, "at": _changed_at(path)}


def _recent_arena(here: WebState, arena: ArenaRow) -> dict[str, Any]:
    name, events, settled = arena.name, arena.events, arena.settled
    entries = ArenaStore(here.store.database, name).entries()
    names = {entry.name for entry in entries}
    state = "done" if events and settled == events else "live" if events else "no events yet"
    item = {"kind": "arena", "id": name, "name": name, "what": f"arena, {plural(len(names), 'participant')}"}
    result, cost = f"{settled} of {plural(events, 'event')} resolved", sum(entry.dollars for entry in entries)
    return {**item, "state": state, "result": result, "cost": cost, "at": arena.created}


def _changed_at(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")


MOST_RECENT = 12
SCORES_BESIDE = (("price", "the market"), ("base_rate", "the base rate"))
NEWEST_TREES = 5
"""Maximum number of tree files tried until one can be read."""


def _index(run: RunRowView) -> float:
    return float(run.score["brier_index"]["estimate"])


def _researched(here: WebState, runs: Sequence[RunRowView]) -> dict[str, Any] | None:
    """Return the card of an answer from the newest run in which a model did research; None if there is none."""
    for run in runs:
        row = here.store.run(run.id) if run.model and run.done else None
        if row is None:
            continue
        for answer in sorted(
            here.scores(row, finished=run.finished).answers, key=lambda answer: -len(answer.leading.trials)
        ):
            leading = answer.leading
            if leading.p is None:
                continue
            parts = [f"{answer.question.text} {percent(leading.p)}"]
            parts += [f"the market said {percent(leading.price)}"] if leading.price is not None else []
            parts += [f"the answer was {'yes' if leading.outcome else 'no'}"] if leading.outcome is not None else []
            ids, due = [run.id, answer.question.id], answer.question.due.isoformat()
            title, text = "An agent's research", f"{'; '.join(parts)}."
            return {"kind": "question", "title": title, "text": text, "name": run.called, "ids": ids, "due": due}
    return None


# Log in with the link that `foretell serve` printed, or by typing its token into a form.


@router.get("/login", include_in_schema=False)
def login(request: Request, token: str = "") -> Response:
    """Log in if the address has the token, else show a form that asks for it."""
    return _enter(access_of(request), token) if token else html_page(request, "login.html", None)


@router.post("/login", include_in_schema=False)
async def login_by_form(request: Request) -> Response:
    """Log in with the token from the form."""
    return _enter(access_of(request), (await form_of(request)).get("token", [""])[0].strip())


@router.post("/logout", include_in_schema=False)
def logout(_: TokenRequired) -> Response:
    """End the session."""
    answer = RedirectResponse(link_to("home"), status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


def _enter(access: AccessRules, token: str) -> Response:
    if not access.holds(token):
        raise HTTPException(403, "that is not the token of this server; it was printed when the server was started")
    answer = RedirectResponse(link_to("home"), status_code=303)
    answer.set_cookie(COOKIE, access.new_session(), httponly=True, samesite="strict", path="/")
    return answer
