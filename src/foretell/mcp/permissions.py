"""What a server may do for untrusted clients: which files it reads, which models it asks, and how much it spends."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from foretell.models.budget import Budget
from foretell.models.names import ModelName
from foretell.operations.requests.asking import NO_CHOICE, AskRequest
from foretell.operations.requests.runs import GridRequest, ReplayRequest, RunRequest
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.requests.tournaments import TournamentResultsRequest, TournamentRunRequest
from foretell.operations.requests.trees import (
    TreeEditRequest,
    TreeLogRequest,
    TreeRequest,
    TreeShowRequest,
    TreeUpdateRequest,
    WhatIfRequest,
)
from foretell.operations.run import changed_spec
from foretell.questions.errors import InputError
from foretell.request import OperationRequest
from foretell.runs.settings import Settings
from foretell.runs.spec import COMBINATIONS, RunSpec, read_changes, read_spec, spec_from_mapping, with_settings
from foretell.runs.store import RunStore, find_run_row
from foretell.scoring.table_input import names_a_file

Research = TypeVar("Research", AskRequest, TreeRequest, TreeUpdateRequest)
TreeChange = TypeVar("TreeChange", TreeEditRequest, TreeUpdateRequest)
TreeReading = TypeVar("TreeReading", TreeShowRequest, WhatIfRequest)
MAX_FILE_BYTES = 64_000_000
"""Maximum size of a file that may be read, in bytes."""
GLOB_CHARACTERS = frozenset("*?[]{}")
"""Characters that would turn a file name into a pattern matching several files."""
MOST = {"trials": 10, "leaves": 40, "rounds": 3, "nodes": 5000, "steps": 30, "concurrency": 50, "draws": 10_000}
"""Field → the largest value that a client may request."""
GROUNDERS = ("search", "agent", "plain")
"""Grounders that clients may use; none of them runs code or calls other services."""
FORECASTERS = ("agent", "tree", "thoughts", "crowd", "market", "prior", "crowd-else-prior", "outside", "auto")
"""Forecasters that clients may run; none of them reads arbitrary files."""
QUESTION_SETS = ("demo", "forecastbench")
"""Question sets that clients may use by name; others must be files in the readable folders."""
WITHHELD = (
    *("out", "unsandboxed", "save", "dataset", "where", "title"),
    "summary",
)
"""Request fields that are not offered, because they write files, run unsandboxed code or read arbitrary files."""
MAX_CLAIMS, MAX_ROWS = 20_000, 20_000
"""Maximum number of claims in a tree, and of rows in a table, that a client may send."""
ALLOW_SPENDING = "start foretell mcp with --allow-spending DOLLARS and --model NAME"


@dataclass(frozen=True, kw_only=True)
class ReadableFiles:
    """Folders whose files may be read; if there are none, no file may be read."""

    roots: tuple[Path, ...] = ()

    @classmethod
    def under(cls, folders: Sequence[Path]) -> "ReadableFiles":
        """Allow the files under these folders, all of which must exist."""
        for folder in folders:
            if not folder.is_dir():
                raise InputError("there is no such directory", path=folder, column="--files")
        return cls(roots=tuple(folder.resolve() for folder in folders))

    def find(self, written: str) -> Path:
        """Find a readable file by its path; symbolic links are resolved before the check."""
        if not self.roots:
            raise InputError("no file may be read", hint="start foretell mcp with --files DIR, or send the data itself")
        if GLOB_CHARACTERS & set(written) or "\x00" in written:
            raise InputError(f"{written[:200]!r} is not the name of one file")
        for root in self.roots:
            found = (root / written).resolve()
            if found.is_relative_to(root) and found.is_file():
                if found.stat().st_size > MAX_FILE_BYTES:
                    raise InputError(f"{written[:200]!r} is larger than {MAX_FILE_BYTES // 1_000_000} MB")
                return found
        # The same message wherever the file is: do not reveal what exists outside.
        raise InputError(f"{written[:200]!r} is not a file under the directories that may be read")


@dataclass(frozen=True, kw_only=True)
class ServerPermissions:
    """What a server may do: its settings, models, search engines and files."""

    settings: Settings
    """The server's settings; their budget limits all spending."""
    models: tuple[str, ...] = ()
    """The models that clients may use; the first is the default."""
    search: tuple[str, ...] = ()
    """The search engines that clients may use; the first is the default."""
    files: ReadableFiles = field(default_factory=ReadableFiles)

    @property
    def budget(self) -> Budget | None:
        """The server's budget; None if it may not spend anything."""
        return self.settings.budget

    @property
    def may_spend(self) -> bool:
        """Whether the server may call a model."""
        return self.budget is not None and bool(self.models)

    def defaults(self) -> dict[str, Any]:
        """Return the model and search engines to use if the client names none."""
        return {"model": self.models[0] if self.may_spend else NO_CHOICE, "search": list(self.search)}

    def model(self, wanted: str | None = None) -> str:
        """Return the model to use; raise if it is not offered or the budget is spent."""
        if self.budget is None:
            raise InputError("spending is off", hint=ALLOW_SPENDING)
        if not self.models:
            raise InputError("no model is on offer", hint=ALLOW_SPENDING)
        if wanted is not None and wanted not in self.models:
            raise InputError(f"{wanted[:200]!r} is not on offer", hint=f"models are {', '.join(self.models)}")
        chosen = wanted or self.models[0]
        allowed, money = self.budget.dollars or 0.0, self.budget.money
        if money.used >= allowed and not ModelName.read(chosen).free:
            raise InputError(f"the budget of this server, ${allowed:.2f}, is used up: {money}")
        return chosen

    def check_research(self, request: Research) -> Research:
        """Return the request if its models, search engines and sizes are permitted; raise otherwise."""
        if request.config is not None:
            request = request.model_copy(update={"config": self.files.find(str(request.config))})
        forecaster = "agent" if isinstance(request, AskRequest) else "tree"
        settings = {**request.settings({"forecaster": forecaster}), "questions": "demo"}
        if settings.get("models"):
            self._check_spec(spec_from_mapping(settings))
        self._check_sizes(request)
        self._check_grounder(getattr(request, "grounder", None) or GROUNDERS[0])
        return request

    def _check_sizes(self, request: OperationRequest) -> None:
        bootstrap = getattr(request, "bootstrap", None)
        for name, most in MOST.items():
            if (getattr(request, name, getattr(bootstrap, name, 0)) or 0) > most:
                raise InputError(f"at most {most} are permitted here", column=name)

    def check_run(self, request: RunRequest) -> RunRequest:
        """Return the run request if its files, models and search engines are permitted; raise otherwise."""
        spec, changes = request.spec, read_changes(request.set)
        if request.stored is not None:
            with closing(RunStore(self.settings.store)) as store:
                row = find_run_row(store, request.stored)
            self._check_spec(changed_spec(row, changes))
            return request
        if isinstance(spec, Path):
            found = read_spec(self.files.find(str(spec)), changes)
        else:
            found = spec_from_mapping(with_settings(spec, changes) if changes else spec)
        self._check_spec(found)
        questions = found.questions
        if questions.dataset not in QUESTION_SETS:
            questions = replace(questions, dataset=str(self.files.find(questions.dataset)))
        written = json.loads(replace(found, questions=questions).to_json())
        return request.model_copy(update={"spec": written, "set": {}})

    def check_replay(self, request: ReplayRequest) -> ReplayRequest:
        """Return the request if it names a stored run: notebooks of trees are not run from here."""
        with closing(RunStore(self.settings.store)) as store:
            return request.model_copy(update={"run": find_run_row(store, request.run).id})

    def check_grid(self, request: GridRequest) -> GridRequest:
        """Return the request if it only lists or shows grids: only people run them."""
        if request.file is not None:
            raise InputError("experiments are not run from here", column="grid", hint="name one to show, or none")
        return request

    def _check_spec(self, found: RunSpec) -> None:
        sizes = {"trials": found.trials, "concurrency": found.concurrency, **found.options}
        for name, most in MOST.items():
            size = sizes.get(name)
            if isinstance(size, int | float) and size > most:
                raise InputError(f"at most {most} are permitted here", column=name)
        if found.forecaster not in FORECASTERS:
            hint = f"use {', '.join(FORECASTERS)}"
            raise InputError(f"{found.forecaster[:80]!r} is not on offer here", column="forecaster", hint=hint)
        self._check_grounder(str(found.options.get("grounder", GROUNDERS[0])))
        for model in (*found.models.values(), found.options.get("deep_model")):
            if model is not None:
                self.model(str(model))
        for engine in found.search:
            self.engine(engine)
        if found.options.get("unsandboxed"):
            raise InputError("notebooks without a sandbox are not on offer here", column="options.unsandboxed")
        if found.combine not in COMBINATIONS:
            self.files.find(found.combine)

    def check_tournament(self, request: TournamentRunRequest) -> TournamentRunRequest:
        """Return the request if it sends nothing: only people submit forecasts."""
        if not (request.plan or request.dry_run or (request.sandbox and request.platform == "forecastbench")):
            raise InputError("forecasts are not sent from here", hint="say plan or dry_run; people send them")
        if request.config is not None:
            raise InputError("is not on offer here", column="config", hint="name model, search and trials")
        for name in ("folder", "bucket"):
            if f"tournament.{name}" in request.set:
                raise InputError("this server does not offer it", column=f"set tournament.{name}")
        settings = {**request.settings(), "questions": "demo"}
        if settings.get("models"):
            self._check_spec(spec_from_mapping(settings))
        elif request.platform != "forecastbench":
            self.model()
        self._check_sizes(request)
        return request

    def check_results(self, request: TournamentResultsRequest) -> TournamentResultsRequest:
        """Return the request with its method files resolved; raise if one may not be read."""
        self._check_sizes(request)
        return request.model_copy(update={"methods": tuple(self.files.find(str(one)) for one in request.methods)})

    def check_tree(self, request: TreeReading) -> TreeReading:
        """Return the request with the tree that was sent, or with its file if that may be read."""
        if not isinstance(request.tree, dict):
            return request.model_copy(update={"tree": self._readable_tree(str(request.tree))})
        claims = len(cast("dict[str, Any]", request.tree).get("nodes", ()))
        if claims > MAX_CLAIMS:
            raise InputError(f"the tree has {claims:,} claims; at most {MAX_CLAIMS:,} can be sent")
        return request

    def check_own_tree(self, request: TreeChange) -> TreeChange:
        """Return the request with the tree's path in this server's own folder: it may change no other tree."""
        if isinstance(request, TreeEditRequest) and isinstance(request.edits, Path):
            raise InputError("send the list itself; no file is read", column="edits")
        author = request.author or "over MCP"
        return request.model_copy(update={"tree": self._own_tree(str(request.tree)), "author": author})

    def check_tree_update(self, request: TreeUpdateRequest) -> TreeUpdateRequest:
        """Return the request for work on this server's own tree if its models, engines and sizes are permitted."""
        return self.check_own_tree(self.check_research(request))

    def check_versions(self, request: TreeLogRequest) -> TreeLogRequest:
        """Return the request with the paths of its trees: in this server's own folder, or files that may be read."""
        paths = {"tree": self._readable_tree(str(request.tree))}
        if request.other is not None:
            paths["other"] = self._readable_tree(str(request.other))
        return request.model_copy(update=paths)

    def _readable_tree(self, written: str) -> Path:
        try:
            return self._own_tree(written)
        except InputError:
            return self.files.find(written)

    def _own_tree(self, written: str) -> Path:
        """Return the path of a tree that this server has grown, given its name or file name."""
        folder = (self.settings.home / "trees").resolve()
        if "\x00" not in written:
            for name in (written, f"{written}.json"):
                found = (folder / name).resolve()
                if found.is_relative_to(folder) and found.suffix == ".json" and found.is_file():
                    return found
        raise InputError(f"{written[:200]!r} is not a tree of this server", hint="grow_tree makes one")

    def check_tables(self, request: ScoreRequest) -> ScoreRequest:
        """Return the request with the tables that were sent as rows, or with their files if those may be read."""
        self._check_sizes(request)
        sources = [str(self.files.find(source)) if names_a_file(source) else source for source in request.sources]
        found: dict[str, Any] = {"sources": tuple(sources)}
        for name in ("forecasts", "outcomes"):
            table: Any = getattr(request, name)
            if isinstance(table, str):
                found[name] = self.files.find(table)
            elif table is not None and not isinstance(table, list):
                raise InputError("send rows, or the name of a file", column=name)
            elif table is not None and len(cast("list[Any]", table)) > MAX_ROWS:
                raise InputError(f"at most {MAX_ROWS:,} rows can be sent", column=name)
        return request.model_copy(update=found)

    def _check_grounder(self, grounder: str) -> None:
        if grounder not in GROUNDERS:
            hint = f"use {', '.join(GROUNDERS)}"
            raise InputError(f"the grounder {grounder[:80]!r} is not on offer here", column="grounder", hint=hint)

    def engine(self, wanted: str | None = None) -> str:
        """Return the search engine to use; raise if it is not offered."""
        if not self.search:
            raise InputError("no search engine is on offer", hint="start foretell mcp with --search local, or another")
        if wanted is not None and wanted not in self.search:
            raise InputError(f"{wanted[:200]!r} is not on offer", hint=f"engines are {', '.join(self.search)}")
        return wanted or self.search[0]

    def spending(self) -> dict[str, float] | None:
        """Return what the server has cost so far and the limit, in dollars; None if it may not spend."""
        if self.budget is None:
            return None
        return self.budget.money.to_dict() | {"allowed": self.budget.dollars or 0.0}
