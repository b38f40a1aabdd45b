"""A home with fake services, for every test of the server."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.mcp_server.office import DOCUMENTS, ServerHome

from fakes.models import BackgroundModels
from foretell.data.corpus import Corpus, read_documents

BRAIN = "foretell.practice.models.scripts:tree_script"


@pytest.fixture(scope="session")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN) as fake:
        yield fake


@pytest.fixture
def server_home(tmp_path: Path, provider: BackgroundModels) -> ServerHome:
    pytest.importorskip("mcp", reason="mcp is not installed: pip install 'foretell[mcp]'")
    provider.reset()
    environment = {"OPENAI_API_KEY": "sk-canary", "FORETELL_OPENAI_URL": f"{provider.url}/v1"}
    server_home = ServerHome(folder=tmp_path, environment=environment)
    server_home.files.mkdir()
    articles = tmp_path / "articles.jsonl"
    articles.write_text("".join(json.dumps(row) + "\n" for row in DOCUMENTS), encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    with closing(Corpus(home / "corpus.db")) as corpus:
        corpus.add(read_documents(articles))
    return server_home
