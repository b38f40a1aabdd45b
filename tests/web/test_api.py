import contextlib
import itertools
import re
from http import HTTPStatus
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, HTTPException
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.web.app import create_app
from foretell.web.moved import MOVED
from foretell.web.rendering import TEMPLATES

PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/nowhere", 404),
        ("GET", "/api/runs/none", 404),
        ("GET", "/api/runs/none/stream", 404),
        ("GET", "/api/runs/none/stream?question=a/b", 404),
        ("PUT", "/api/runs", 405),
        ("DELETE", "/api/trees", 405),
        ("GET", "/api/runs?offset=-1", 422),
        ("GET", "/api/runs?limit=many", 422),
        ("GET", "/api/ask", 422),
        ("GET", "/api/ask?text=", 422),
        ("GET", "/api/ask?text=x&surprise=1", 422),
        ("GET", "/static/..%2Fserver.py", 404),
        ("GET", "/static/nothing.css", 404),
    ],
)
def test_errors_say_what_is_wrong(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == PROBLEM
    problem = answer.json()
    assert problem["status"] == status
    assert problem["detail"]


def test_body_that_is_not_text_is_refused_as_documented(client: TestClient, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = client.post("/api/trees", content=b"\xff\xfe{", headers=headers)
    assert answer.headers["content-type"] == PROBLEM
    described = client.get("/openapi.json").json()["paths"]["/api/trees"]["post"]["responses"]
    assert answer.status_code == 400
    assert "400" in described


def test_errors_of_pages_are_pages(client: TestClient) -> None:
    for path, status in (("/nowhere", 404), ("/runs/none", 404), ("/runs?offset=-1", 422)):
        answer = client.get(path)
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")
        assert 'role="alert"' in answer.text
    assert client.post("/", headers={"content-length": "0"}).status_code == 405


def test_titles_of_error_pages_keep_abbreviations_and_names(app: FastAPI, client: TestClient) -> None:
    @app.get("/long")
    def long() -> None:
        raise HTTPException(414, "PostgreSQL cannot read a YAML file from the URI")

    text = client.get("/long").text
    assert f"<h1>{HTTPStatus(414).phrase}</h1>" in text
    assert "PostgreSQL cannot read a YAML file from the URI." in text
    assert "<h1>Not found</h1>" in client.get("/nowhere").text
    assert "All arenas" in client.get("/arena/nowhere").text
    spoiling = [path.name for path in TEMPLATES.glob("*.html") if "|capitalize" in path.read_text(encoding="utf-8")]
    assert not spoiling, "|capitalize makes all letters but the first small: use |capital"


def test_internal_errors_reveal_no_secrets(settings: Settings, token: str) -> None:
    app = create_app(settings, token=token)

    @app.get("/api/broken")
    def broken() -> None:
        raise RuntimeError("the secret is 42")

    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        answer = client.get("/api/broken")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == PROBLEM
    assert "42" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_every_route_is_in_the_openapi_document(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for path in (
        "/api/ask",
        "/api/runs",
        "/api/runs/{run}",
        "/api/runs/{run}/stream",
        "/api/runs/{run}/questions/{question}",
        "/api/runs/{run}/events",
    ):
        assert path in paths
    for methods in paths.values():
        for method, operation in methods.items():
            assert operation["description"]
            free = "whatif" in operation["operationId"] or "play" in operation["operationId"]
            assert (method == "post") == ("security" in operation) or free
            assert PROBLEM in operation["responses"]["404"]["content"]
    routes = [(method, path) for path, methods in paths.items() for method in methods]
    record = [path for _, path in routes if path.startswith("/api/record")]
    assert len(record) == 3
    assert len(routes) - len(record) <= 26


def test_there_are_sixteen_pages_beside_the_record(full: FastAPI) -> None:
    helpers = {"/login", "/openapi.json", "/static/{name}", "/api/ask/estimate", "/trees/update/{name:path}"}
    routes = [route for route in full.routes if isinstance(route, APIRoute) and "GET" in route.methods]
    pages = {route.path for route in routes if not route.include_in_schema} - set(MOVED) - helpers
    assert len(pages - {"/record", "/record/{id}"}) == 16


def test_old_addresses_redirect_to_new_ones(client: TestClient) -> None:
    for old, new in {
        "/find?words=oslo+snow": "/runs?find=oslo+snow",
        "/board?run=a&run=b": "/compare?run=a&run=b",
        "/grids/my%2Fgrid": "/runs?grid=my%2Fgrid",
        "/arena/spring/events?find=x": "/arena/spring?view=events&find=x",
        "/arena/spring/part/table-1": "/arena/spring?view=table-1",
        "/trees/do/expand/run/tree?claim=P1": "/trees/update/run%2Ftree?claims=P1",
        "/tournaments": "/#tournaments",
        "/studies/trials": "/",
        "/models?find=gpt": "/setup?find=gpt",
        "/board?//evil.example": "/compare?%2F%2Fevil.example=",
    }.items():
        answer = client.get(old, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (301, new)
    for old in MOVED:
        assert client.get(re.sub(r"\{\w+(:path)?\}", "x", old), follow_redirects=False).status_code == 301


def test_interactive_api_documentation_is_off(client: TestClient) -> None:
    assert client.get("/docs").status_code == 404
    assert client.get("/redoc").status_code == 404


@pytest.fixture
def full(settings: Settings, store: RunStore, token: str) -> FastAPI:
    StoredRunBuilder(questions=2, trials=2, failing=1).keep(store)
    StoredRunBuilder(questions=1, trials=1, options=("red", "green")).keep(store)
    return create_app(settings, token=token)


def can_be_asked_wrongly(method: str, described: dict[str, Any]) -> bool:
    """Return whether a request to an operation can be invalid: it has a body or parameters other than plain text."""
    words = {"type", "title", "description"}
    return method != "get" or any(
        parameter["in"] != "path" or parameter["schema"].get("type") != "string" or parameter["schema"].keys() - words
        for parameter in described.get("parameters", ())
    )


# The case generator sends bodies that are not JSON in a way that its client calls deprecated.
@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_no_request_breaks_the_server(full: FastAPI, store: RunStore, token: str) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, Phase, given, seed
    from hypothesis import settings as bounded
    from hypothesis.errors import Unsatisfiable
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    runs = [row.id for row in store.runs()]
    with TestClient(full, base_url="http://127.0.0.1") as client:
        described = client.get("/openapi.json").json()
        schema = schemathesis.openapi.from_dict(described)
        tried = 0
        operations = [result.ok() for result in schema.get_all_operations()]
        for operation, mode in itertools.product(operations, schemathesis.GenerationMode):
            of_it = described["paths"][operation.path][operation.method]
            if mode.is_negative and not can_be_asked_wrongly(operation.method, of_it):
                continue

            @seed(7)
            @bounded(
                max_examples=6,
                database=None,
                derandomize=False,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def attempt(case: Any) -> None:
                nonlocal tried
                tried += 1
                if "run" in (case.path_parameters or {}) and tried % 2:
                    case.path_parameters["run"] = runs[tried % len(runs)]
                    if "question" in case.path_parameters and tried % 3:
                        case.path_parameters["question"] = "own/0000"
                arguments = case.as_transport_kwargs(base_url="http://127.0.0.1")
                headers = {**arguments.pop("headers", {}), "Authorization": f"Bearer {token}"}
                # Not every client encodes text beyond ASCII itself.
                headers = {name: value.encode("latin-1") for name, value in headers.items()}
                arguments.pop("cookies", None)
                try:
                    answer = client.request(headers=headers, **arguments)
                except httpx2.InvalidURL:  # Longer than the client sends.
                    return
                checks = (
                    not_a_server_error,
                    status_code_conformance,
                    content_type_conformance,
                    response_schema_conformance,
                )
                case.validate_response(schemathesis.Response.from_any(answer), checks=checks)

            with contextlib.suppress(Unsatisfiable):  # Some operations accept every request.
                attempt()
    assert tried > 100
    # Limited by the number of examples; a longer time means that something hangs.
