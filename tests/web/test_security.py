import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.web.app import create_app
from foretell.web.middleware import MAX_BODY_BYTES
from foretell.web.security import COOKIE, AccessRules

WISH = {"question": "Will it snow?", "model": "openai:x"}


def logged_in(client: TestClient, token: str) -> str:
    """Log the client in; return the CSRF token of its forms."""
    assert client.get("/login", params={"token": token}).status_code == 303
    match = re.search(r'name="csrf" value="(\w+)"', client.get("/").text)
    assert match
    return match[1]


def test_pages_have_security_headers(client: TestClient) -> None:
    for path in ("/", "/nowhere", "/api/runs", "/static/foretell.css"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8400", "", "127.0.0.1.evil.example", "[", "10.0.0.1"])
def test_unknown_host_names_are_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/runs", headers={"host": host})
    assert answer.status_code == 421
    assert "runs" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8400", "127.0.0.1", "[::1]:8400", "LOCALHOST"])
def test_own_host_names_are_accepted(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


def test_reading_from_other_machines_requires_the_token(settings: Settings, token: str) -> None:
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
    for path in ("/api/ask", "/ask", "/api/runs/x/stop", "/runs/x/stop", "/api/runs", "/logout"):
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


def test_cookie_is_http_only_and_same_site(client: TestClient, token: str) -> None:
    header = client.get("/login", params={"token": token}).headers["set-cookie"]
    assert "HttpOnly" in header
    assert "SameSite=strict" in header
    assert token not in header


def test_forms_of_other_sites_are_refused(client: TestClient, token: str) -> None:
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


def test_csrf_token_of_another_session_is_refused(app: Any, client: TestClient, token: str) -> None:
    csrf = logged_in(client, token)
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as other:
        assert logged_in(other, token) != csrf
        assert other.post("/logout", data={"csrf": csrf}).status_code == 403


def test_sessions_of_another_token_are_invalid() -> None:
    mine, theirs = AccessRules(token="a" * 20), AccessRules(token="b" * 20)
    assert mine.valid_session(mine.new_session())
    assert not mine.valid_session(theirs.new_session())
    for forged in ("", ".", "x", "x.y", "é.é", None):
        assert not mine.valid_session(forged)


def test_logout_ends_the_session(client: TestClient, token: str) -> None:
    csrf = logged_in(client, token)
    assert client.post("/logout", data={"csrf": csrf}).status_code == 303
    assert "Log in" in client.get("/").text


def test_token_does_not_appear_in_pages_or_logs(
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
    # The test client logs requested addresses; the server must not.
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert not [line for line in ours if token in line]
    assert token not in repr(client.app.state.serving.access)  # pyright: ignore
    assert not [
        path for path in Path(settings.home).rglob("*") if path.is_file() and token.encode() in path.read_bytes()
    ]


def test_large_bodies_and_forms_are_refused(client: TestClient, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    post = client.post("/api/ask", content=b"x" * (MAX_BODY_BYTES + 1), headers=headers)
    assert post.status_code == 413

    def trickle() -> Any:
        for _ in range(20):
            yield b" " * (MAX_BODY_BYTES // 10)

    assert client.post("/api/ask", content=trickle(), headers=headers).status_code == 413


def test_spec_may_not_name_a_file_of_the_server(client: TestClient, token: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("questions: demo\nforecaster: {kind: crowd}\n", encoding="utf-8")
    csrf = logged_in(client, token)
    for name in (str(file), str(tmp_path / "none.yaml"), "."):
        sent = client.post("/api/runs", json={"spec": name}, headers={"Authorization": f"Bearer {token}"})
        typed = client.post("/runs", data={"spec": name, "csrf": csrf}, follow_redirects=False)
        assert sent.status_code == typed.status_code == 422
        assert sent.json()["field"] == "spec"
    assert client.get("/api/runs").json()["total"] == 0


def test_short_tokens_are_refused() -> None:
    from foretell.cli.main import cli

    result = CliRunner().invoke(cli, ["serve", "--token", "short"])
    assert "the token is too short" in str(result.exception)


def test_missing_extra_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    from foretell.cli.main import cli

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


def test_a_wrong_token_is_answered_with_a_way_to_log_in(client: TestClient, token: str) -> None:
    refused = client.get("/login", params={"token": "wrong"})
    assert refused.status_code == 403
    assert "That is not the token of this server" in refused.text
    assert re.search('<a class="button" href="/login">', refused.text)
    client.get("/login", params={"token": token})
    lost = client.get("/runs/nothing")
    assert lost.status_code == 404
    assert '<a href="/runs">All runs</a>' in lost.text
    assert 'href="/login"' not in lost.text
