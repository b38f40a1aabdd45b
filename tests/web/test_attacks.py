"""Attacks on the server, by class: each is refused or has no effect, and no response contains the payload."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.web.app import create_app
from foretell.web.security import COOKIE

OURS = "http://127.0.0.1"
SCRIPT = "<script>hit()</script>"
REFUSED = frozenset({400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 431})
SEEN = REFUSED | {200, 303, 307}
"""Statuses for attacks that may be answered with a harmless response."""
WISH = {"question": "Will it snow?", "model": "openai:x"}
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One request, and the statuses that may answer it."""

    path: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    json: Any = None
    statuses: frozenset[int] = REFUSED
    logged_in: bool = False
    """Sent by a logged-in browser, with its cookie."""
    bearer: bool = False
    """Sent by a program that has the token."""


def from_elsewhere(**more: Any) -> Attack:
    """Return a form that another site makes a logged-in browser send."""
    return Attack(method="POST", path="/ask", logged_in=True, **more)


ATTACKS: dict[str, Attack] = {
    # A host name of the attacker that resolves to this server (DNS rebinding).
    **{
        f"host {host!r}": Attack(path="/api/runs", headers={"host": host}, statuses=frozenset({421}))
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example:8400",
            "0.0.0.0",
            "127.0.0.1@evil.example",
            "evil.example/127.0.0.1",
            "2130706433",
            "[::1].evil.example",
            "127.0.0.1,evil.example",
        )
    },
    # Another site uses a logged-in browser (CSRF).
    "form without a sign": from_elsewhere(body=b"question=x&outside=yes", headers={"content-type": FORM}),
    "form with a guessed sign": from_elsewhere(body=b"question=x&csrf=" + b"0" * 64, headers={"content-type": FORM}),
    "form with an empty sign": from_elsewhere(body=b"question=x&csrf=", headers={"content-type": FORM}),
    "sign in the address": Attack(
        method="POST", path="/ask?csrf=" + "0" * 64, body=b"question=x", headers={"content-type": FORM}, logged_in=True
    ),
    "sign in a cookie": from_elsewhere(
        body=b"question=x", headers={"content-type": FORM, "cookie": "csrf=" + "0" * 64}
    ),
    "form as plain text": from_elsewhere(body=b"question=x", headers={"content-type": "text/plain"}),
    "form in parts": from_elsewhere(
        body=b'--b\r\nContent-Disposition: form-data; name="question"\r\n\r\nx\r\n--b--\r\n',
        headers={"content-type": "multipart/form-data; boundary=b"},
    ),
    "json as plain text": Attack(
        method="POST",
        path="/api/ask",
        body=b'{"question": "x"}',
        headers={"content-type": "text/plain"},
        logged_in=True,
    ),
    "json without a sign": Attack(method="POST", path="/api/ask", json=WISH, logged_in=True),
    "stop a run from elsewhere": Attack(
        method="POST", path="/runs/x/stop", headers={"origin": "http://evil.example"}, logged_in=True
    ),
    "log out from elsewhere": Attack(
        method="POST", path="/logout", headers={"origin": "null", "content-type": FORM}, body=b"", logged_in=True
    ),
    # The wrong method.
    **{
        f"{method} where only POST spends": Attack(method=method, path="/api/runs/x/stop", logged_in=True)
        for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
    },
    "method in a header": Attack(path="/api/runs/x/stop", headers={"x-http-method-override": "POST"}, logged_in=True),
    "method in the address": Attack(path="/api/runs/x/resume?_method=POST", logged_in=True),
    # Another site reads (CORS).
    "preflight": Attack(
        method="OPTIONS",
        path="/api/ask",
        headers={"origin": "http://evil.example", "access-control-request-method": "POST"},
    ),
    "reading from elsewhere": Attack(path="/api/runs", headers={"origin": "http://evil.example"}, statuses=SEEN),
    # The token, guessed or misplaced.
    "no token": Attack(method="POST", path="/api/ask", json=WISH),
    "token in the address": Attack(method="POST", path="/api/ask?token=test-token-0123456789-canary", json=WISH),
    "empty token": Attack(method="POST", path="/api/ask", json=WISH, headers={"authorization": "Bearer "}),
    "token by another scheme": Attack(
        method="POST", path="/api/ask", json=WISH, headers={"authorization": "Basic dGVzdA=="}
    ),
    "a session made up": Attack(method="POST", path="/api/ask", json=WISH, headers={"cookie": f"{COOKIE}=a.b"}),
    "a session without a signature": Attack(
        method="POST", path="/api/ask", json=WISH, headers={"cookie": f"{COOKIE}=a."}
    ),
    # Out of the folder (path traversal).
    **{
        f"files by {path}": Attack(path=path, statuses=frozenset({400, 404, 422, 405}))
        for path in (
            "/static/../app.py",
            "/static/..%2fapp.py",
            "/static/%2e%2e/app.py",
            "/static/..%5capp.py",
            "/static/....//app.py",
            "/static/%2fetc%2fpasswd",
            "/static//etc/passwd",
            "/static/foretell.css%00.js",
            "/static/..%252fapp.py",
            "/trees/view/../../../../etc/passwd",
            "/trees/view/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
            "/trees/view//etc/passwd",
            "/api/tree/export/json/%2e%2e%2fpasswd",
            "/arena/..%2f..%2fpyproject",
            "/arena/..%2f..%2fetc%2fpasswd",
            "/runs/..%2f..%2fruns.db",
            "/api/runs/..%2f..%2fjournal.db",
        )
    },
    "a spec that is a file": Attack(method="POST", path="/api/runs", json={"spec": "/etc/passwd"}, bearer=True),
    "questions out of the folder": Attack(
        method="POST", path="/api/runs", json={"spec": {"questions": "../../../etc/passwd"}}, bearer=True
    ),
    "questions from this machine's network": Attack(
        method="POST", path="/api/runs", json={"spec": {"questions": "http://169.254.169.254/latest"}}, bearer=True
    ),
    # Line breaks in headers.
    "header in the token": Attack(path="/login?token=x%0d%0aset-cookie:%20a=b"),
    "header in a run": Attack(path="/runs/x%0d%0ax-evil:%20yes"),
    "header in a search": Attack(path="/runs?filter=x%0d%0ax-evil:%20yes", statuses=SEEN),
    # Redirects to another site (open redirects).
    **{
        f"away by {path}": Attack(path=path, statuses=SEEN)
        for path in (
            "/login?token=test-token-0123456789-canary&next=//evil.example",
            "//evil.example/runs/",
            "/%5cevil.example/",
            "/login/?next=http://evil.example",
            "/runs/?redirect=https://evil.example",
        )
    },
    # Cache poisoning.
    **{
        f"{name} of the attacker's": Attack(path="/", headers={name: "evil.example"}, statuses=SEEN)
        for name in ("x-forwarded-host", "x-host", "x-original-url", "x-rewrite-url", "forwarded", "x-forwarded-prefix")
    },
    # Scripts in input that is shown again.
    **{
        f"script by {path}": Attack(path=f"{path}{SCRIPT.replace('/', '%2F')}", statuses=SEEN)
        for path in (
            "/runs/",
            "/runs?filter=",
            "/ask?question=",
            "/compare?reference=",
            "/arena/",
            "/trees/view/",
            "/login?token=",
            "/api/runs/",
            "/nowhere/",
        )
    },
    # Bodies of the wrong type or size.
    "deep nesting": Attack(method="POST", path="/api/ask", body=b"[" * 90_000, bearer=True),
    "an entity": Attack(
        method="POST",
        path="/api/ask",
        body=b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        headers={"content-type": "application/xml"},
        bearer=True,
    ),
    "no text": Attack(method="POST", path="/api/ask", body=b"\xff\xfe\x00", bearer=True),
    "a number without end": Attack(
        method="POST", path="/api/ask", body=b'{"trials": ' + b"9" * 5000 + b"}", bearer=True
    ),
    "not a number": Attack(method="POST", path="/api/ask", body=b'{"question": "x", "budget": NaN}', bearer=True),
    "half a letter": Attack(method="POST", path="/api/ask", body=b'{"question": "\\ud800"}', bearer=True),
    "fields nobody knows": Attack(method="POST", path="/api/ask", json={**WISH, "__class__": "x"}, bearer=True),
    "a thousand fields": Attack(
        method="POST",
        path="/ask",
        body=b"&".join(b"a=%d" % n for n in range(1000)),
        headers={"content-type": FORM},
        bearer=True,
    ),
    "a length that is none": Attack(
        method="POST", path="/api/ask", body=b"{}", headers={"content-length": "1e3"}, bearer=True
    ),
    # Numbers out of bounds.
    **{
        f"numbers by {path}": Attack(path=path, statuses=REFUSED)
        for path in (
            "/api/runs?limit=1000000000",
            "/api/runs?offset=-1",
            "/api/runs/RUN/events?limit=1000000",
            "/api/runs/RUN/events?after=-1",
            "/api/runs/RUN/stream?after=99999999999999999999999",
        )
    },
    # Cookies.
    "a cookie too large": Attack(path="/", headers={"cookie": f"{COOKIE}=" + "x" * 40_000}, statuses=frozenset({431})),
    "cookies without end": Attack(
        path="/", headers={"cookie": "; ".join(f"a{n}=b" for n in range(9000))}, statuses=frozenset({431})
    ),
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, str]]:
    """Return a server with one run."""
    settings = Settings(home=tmp_path_factory.mktemp("attacked"))
    store = RunStore(settings.store)
    id = StoredRunBuilder(questions=1, trials=1).keep(store)
    store.close()
    app = create_app(settings, token="test-token-0123456789-canary")
    with TestClient(app, base_url=OURS, follow_redirects=False, raise_server_exceptions=False) as client:
        yield client, id


def test_number_of_attacks() -> None:
    assert len(ATTACKS) >= 47


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_refused_or_has_no_effect(name: str, attacked: tuple[TestClient, str], token: str) -> None:
    attack, (client, id) = ATTACKS[name], attacked
    headers = dict(attack.headers)
    if attack.logged_in:
        session = client.get("/login", params={"token": token}).cookies[COOKIE]
        headers["cookie"] = "; ".join(filter(None, [f"{COOKIE}={session}", headers.get("cookie", "")]))
    if attack.bearer:
        headers["authorization"] = f"Bearer {token}"
    client.cookies.clear()
    before = client.get("/api/runs").json()
    content: dict[str, Any] = {"json": attack.json} if attack.json is not None else {"content": attack.body}
    answer = client.request(attack.method, OURS + attack.path.replace("RUN", id), headers=headers, **content)
    client.cookies.clear()
    after = client.get("/api/runs").json()
    assert answer.status_code in attack.statuses, answer.text[:500]
    assert before == after
    harmless(answer, attack)


def harmless(answer: Any, attack: Attack) -> None:
    """Check that the response shows, sets and allows nothing of the attacker."""
    headers = answer.headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith(("access-control-", "x-evil"))]
    if headers.get("cache-control") != "no-store":
        assert attack.path.startswith("/static/")
    assert SCRIPT not in answer.text or headers["content-type"] != "text/html; charset=utf-8"
    assert not re.search(
        r"root:[^:\s]*:\d", answer.text
    )  # A line of /etc/passwd; style sheets also contain the word root.
    assert not re.search(r"(href|src|action)=.?(https?:)?//evil\.example", answer.text)
    if location := headers.get("location"):
        assert urlsplit(location).netloc in ("", urlsplit(OURS).netloc)
        assert not location.startswith(("//", "/\\"))
    if cookie := headers.get("set-cookie"):
        assert attack.path.startswith("/login?token=test-token")
        assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
        assert "domain=" not in cookie.lower()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"GET http://evil.example/api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\nContent-Length: 9\r\n\r\nabcd",
        b"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b\x00c\r\n\r\n",
        b"GET /api/runs HTTP/1.1\nHost 127.0.0.1\n\n",
        b"GET /api/runs HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n",
        b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    ],
    ids=[
        "two hosts",
        "whole address",
        "two lengths",
        "two encodings",
        "bad chunk",
        "nul",
        "no colon",
        "space before the colon",
        "tls",
        "tunnel",
    ],
)
def test_malformed_requests_are_refused(site: Any, request_: bytes) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", int(site.url.rpartition(":")[2])), timeout=30) as line:
        line.sendall(request_)
        answer = b""
        while piece := line.recv(65536):
            answer += piece
    assert re.match(rb"HTTP/1\.1 4\d\d ", answer), answer[:200]
    assert b"evil" not in answer.partition(b"\r\n\r\n")[0]
