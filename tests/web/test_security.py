import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.runs import RunStore, Settings
from foretell.web import COOKIE, MAX_BODY_BYTES, AccessRules, create_app

WISH = {"question": "Will it snow?", "model": "openai:x"}


def logged_in(client: TestClient, token: str) -> str:
    """Logs the client in; the value its forms carry."""
    assert client.get("/login", params={"token": token}).status_code == 303
    found = re.search(r'name="csrf" value="(\w+)"', client.get("/").text)
    assert found
    return found[1]


def test_pages_say_what_a_browser_must_not_do(client: TestClient) -> None:
    for path in ("/", "/nowhere", "/api/home", "/static/foretell.css"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8400", "", "127.0.0.1.evil.example", "[", "10.0.0.1"])
def test_a_name_that_is_not_ours_learns_nothing(client: TestClient, host: str) -> None:
    answer = client.get("/api/home", headers={"host": host})
    assert answer.status_code == 421
    assert "runs" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8400", "127.0.0.1", "[::1]:8400", "LOCALHOST"])
def test_our_names_are_known(client: TestClient, host: str) -> None:
    assert client.get("/api/home", headers={"host": host}).status_code == 200


def test_whoever_reaches_us_from_elsewhere_needs_the_token_to_read(settings: Settings, token: str) -> None:
    app = create_app(settings, token=token, host="0.0.0.0")
    with TestClient(app, base_url="http://192.168.1.7", follow_redirects=False) as client:
        assert client.get("/").status_code == 401
        assert client.get("/api/runs").status_code == 401
        assert client.get("/openapi.json").status_code == 401
        assert client.get("/login").status_code == 200
        assert client.get("/static/foretell.css").status_code == 200
        assert client.get("/api/runs", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert client.get("/api/runs", headers={"Authorization": "Bearer wrong"}).status_code == 401
        client.get("/login", params={"token": token})
        assert client.get("/").status_code == 200


def test_spending_needs_the_token(client: TestClient, token: str) -> None:
    for path in ("/api/ask", "/ask", "/api/runs/x/stop", "/runs/x/stop", "/api/runs/x/resume", "/logout"):
        assert client.post(path, json=WISH).status_code == 401, path
    wrong = client.post("/api/ask", json=WISH, headers={"Authorization": "Bearer wrong"})
    assert wrong.status_code == 401
    assert wrong.headers["www-authenticate"] == "Bearer"
    right = client.post("/api/ask", json=WISH, headers={"Authorization": f"Bearer {token}"})
    assert right.status_code == 422
    assert "OPENAI_API_KEY" in right.json()["detail"]


def test_a_server_without_token_spends_nothing(settings: Settings) -> None:
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer None"}):
            assert client.post("/api/ask", json=WISH, headers=headers).status_code == 401
        client.cookies.set(COOKIE, AccessRules().new_session())
        assert client.post("/api/ask", json=WISH).status_code == 401
        assert client.get("/login?token=None", follow_redirects=False).status_code == 403


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(client: TestClient, token: str) -> None:
    kept = client.get("/login", params={"token": token}).headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=strict" in kept
    assert token not in kept


def test_a_form_that_is_not_ours_is_refused(client: TestClient, token: str) -> None:
    csrf = logged_in(client, token)
    form = {"question": "Will it snow?", "outside": "yes"}
    assert client.post("/ask", data=form).status_code == 403
    assert client.post("/ask", data={**form, "csrf": "0" * 64}).status_code == 403
    assert (
        client.post("/ask", data={**form, "csrf": csrf}, headers={"origin": "http://evil.example"}).status_code == 403
    )
    assert client.post("/api/ask", json=WISH).status_code == 403
    assert client.post("/api/ask", json=WISH, headers={"x-csrf-token": csrf}).status_code == 422
    assert client.post("/ask", data={**form, "csrf": csrf}, headers={"origin": "http://127.0.0.1"}).status_code == 303


def test_the_form_of_one_session_is_no_good_in_another(app: Any, client: TestClient, token: str) -> None:
    csrf = logged_in(client, token)
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as other:
        assert logged_in(other, token) != csrf
        assert other.post("/logout", data={"csrf": csrf}).status_code == 403


def test_sessions_of_another_token_are_worthless() -> None:
    mine, theirs = AccessRules(token="a" * 20), AccessRules(token="b" * 20)
    assert mine.valid_session(mine.new_session())
    assert not mine.valid_session(theirs.new_session())
    for forged in ("", ".", "x", "x.y", "é.é", None):
        assert not mine.valid_session(forged)


def test_logging_out_forgets_the_session(client: TestClient, token: str) -> None:
    csrf = logged_in(client, token)
    assert client.post("/logout", data={"csrf": csrf}).status_code == 303
    assert "Log in" in client.get("/").text


def test_the_token_appears_nowhere(
    client: TestClient, token: str, store: RunStore, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    caplog.set_level(logging.DEBUG)
    run = StoredRunBuilder(questions=1).keep(store)
    csrf = logged_in(client, token)
    shown = [client.get(path) for path in ("/", "/ask", "/runs", f"/runs/{run}", "/login", "/api", "/openapi.json")]
    shown.append(client.post("/ask", data={"csrf": csrf, "question": "x", "model": "nonsense"}))
    shown.append(client.get("/login", params={"token": "wrong-" + token}))
    for answer in shown:
        assert token not in answer.text
        assert token not in str(answer.headers)
    # The test's own client logs the addresses it asks for; ours must not.
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert not [line for line in ours if token in line]
    assert token not in repr(client.app.state.serving.access)  # pyright: ignore
    assert not [
        path for path in Path(settings.home).rglob("*") if path.is_file() and token.encode() in path.read_bytes()
    ]


def test_a_flood_is_turned_away(client: TestClient, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    told = client.post("/api/ask", content=b"x" * (MAX_BODY_BYTES + 1), headers=headers)
    assert told.status_code == 413

    def trickle() -> Any:
        for _ in range(20):
            yield b" " * (MAX_BODY_BYTES // 10)

    assert client.post("/api/ask", content=trickle(), headers=headers).status_code == 413


def test_a_spec_is_sent_and_never_named_as_a_file_of_the_server(client: TestClient, token: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("questions: demo\nforecaster: {kind: crowd}\n", encoding="utf-8")
    csrf = logged_in(client, token)
    for name in (str(file), str(tmp_path / "none.yaml"), "."):
        sent = client.post("/api/runs", json={"spec": name}, headers={"Authorization": f"Bearer {token}"})
        typed = client.post("/runs", data={"spec": name, "csrf": csrf}, follow_redirects=False)
        assert sent.status_code == typed.status_code == 422
        assert sent.json()["field"] == "spec"
    assert client.get("/api/runs").json()["total"] == 0


def test_a_token_that_could_be_guessed_is_refused() -> None:
    from foretell.cli import cli

    result = CliRunner().invoke(cli, ["serve", "--token", "short"])
    assert "short enough to be guessed" in str(result.exception)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    from foretell.cli import cli

    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "foretell.web.app":
            raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    result = CliRunner().invoke(cli, ["serve"])
    assert "pip install 'foretell[web]'" in str(result.exception)


def test_logging_in_with_a_browser(page: Any, site: Any, serve: Callable[..., Any]) -> None:
    page.goto(site.login)
    assert page.url == f"{site.url}/"
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("link", name="Log in").click()
    page.get_by_label("Token").fill(site.login.partition("=")[2])
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Log out").wait_for()
