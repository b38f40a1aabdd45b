"""What a server may do for untrusted clients: which files it reads, which models it asks, and how much it spends."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from foretell.forecasters.forecaster import current_options
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.names import ModelName
from foretell.number_text import dollars
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.runs import ReplayRequest, RunRequest
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
from foretell.plugins import NO_CHOICE
from foretell.questions.errors import InputError
from foretell.request import OperationRequest
from foretell.runs.settings import Settings
from foretell.runs.spec import (
    COMBINATIONS,
    USUAL_FORECASTER,
    RunSpec,
    read_changes,
    read_spec,
    spec_from_mapping,
    usual_forecaster,
    with_settings,
)
from foretell.runs.store import RunStore, find_run_row
from foretell.runs.stored_runs import changed_spec

Research = TypeVar("Research", AskRequest, TreeRequest, TreeUpdateRequest)
TreeChange = TypeVar("TreeChange", TreeEditRequest, TreeUpdateRequest)
TreeReading = TypeVar("TreeReading", TreeShowRequest, WhatIfRequest)
MAX_FILE_BYTES = 64_000_000
"""Maximum size of a file that may be read, in bytes."""
GLOB_CHARACTERS = frozenset("*?[]{}")
"""Characters that would turn a file name into a pattern matching several files."""
MOST = {
    **{"trials": 10, "leaves": 40, "rounds": 3, "nodes": 5000, "steps": 30, "concurrency": 50, "draws": 10_000},
    **{"scout_replies": 30, "scout_calls": 10, "leaf_rounds": 10, "children": 8, "evidence_tokens": 50_000},
    **{"max_leaves": 400, "retries": 10, "kernels": 4, "depth": 8, "width": 8, "keep": 8, "trees": 8},
    **{"seconds": 3600, "leaf_seconds": 3600, "reply_seconds": 3600, "max_tokens": 100_000},
}
"""Field or setting → the largest value that a client may request."""
GROUNDERS = ("search", "agent", "plain")
"""Grounders that clients may use; none of them runs code or calls other services."""
FORECASTERS = (
    "reason",
    "agent",
    "tree",
    "thoughts",
    "market-price",
    "market",
    "prior",
    "market-or-base-rate",
    "outside-view",
    "auto",
)
"""Forecasters that clients may run; none of them reads arbitrary files."""
QUESTION_SETS = ("demo", "forecastbench")
"""Question sets that clients may use by name; others must be files in the readable folders."""
MAX_CLAIMS, MAX_ROWS = 20_000, 20_000
"""Maximum number of claims in a tree, and of rows in a table, that a client may send."""
ALLOW_SPENDING = "start foretell mcp with --allow-spending DOLLARS and --model NAME"


@frozen
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

    def find(self, name: str) -> Path:
        """Find a readable file by its path; symbolic links are resolved before the check."""
        if not self.roots:
            raise InputError("no file may be read", hint="start foretell mcp with --files DIR, or send the data itself")
        if GLOB_CHARACTERS & set(name) or "\x00" in name:
            raise InputError(f"{name[:200]!r} is not the name of one file")
        for root in self.roots:
            path = (root / name).resolve()
            if path.is_relative_to(root) and path.is_file():
                if path.stat().st_size > MAX_FILE_BYTES:
                    raise InputError(f"{name[:200]!r} is larger than {MAX_FILE_BYTES // 1_000_000} MB")
                return path
        # The message does not depend on whether the file exists, so as not to reveal that.
        raise InputError(f"{name[:200]!r} is not a file under the directories that may be read")


@frozen
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

    def model(self, name: str | None = None) -> str:
        """Return the model to use; raise if it is not offered or the budget is spent."""
        if self.budget is None:
            raise InputError("spending is off", hint=ALLOW_SPENDING)
        if not self.models:
            raise InputError("this server offers no model", hint=ALLOW_SPENDING)
        if name is not None and name not in self.models:
            raise InputError(f"{name[:200]!r} is not on offer", hint=f"models are {', '.join(self.models)}")
        chosen = name or self.models[0]
        allowed, money = self.budget.dollars or 0.0, self.budget.money
        if money.used >= allowed and not ModelName.read(chosen).free:
            raise InputError(f"the budget of this server, {dollars(allowed)}, is used up: {money}")
        return chosen

    def check_research(self, request: Research) -> Research:
        """Return the request if its models, search engines and sizes are permitted; raise otherwise."""
        if request.config is not None:
            raise InputError("is not on offer here", column="config", hint="use set")
        for name in request.set:
            if name.partition(".")[0] in ("mode", "questions"):
                raise InputError("the question is the one in the request", column=name)
        preset = "agent" if isinstance(request, AskRequest) else "tree"
        usual = usual_forecaster(request.settings().get("options") or {}, preset)
        if isinstance(request, TreeUpdateRequest):
            usual = preset
        spec = _of_typed_question(request.settings({"forecaster": usual}))
        if spec.forecaster not in (preset, USUAL_FORECASTER):
            raise InputError("is not on offer here", column="forecaster", hint="run takes any")
        self._check_spec(spec)
        self._check_sizes(request)
        return request

    def _check_sizes(self, request: OperationRequest) -> None:
        bootstrap = getattr(request, "bootstrap", None)
        for name, most in MOST.items():
            if (getattr(request, name, getattr(bootstrap, name, 0)) or 0) > most:
                raise InputError(f"at most {most} are permitted here", column=name)

    def check_run(self, request: RunRequest) -> RunRequest:
        """Return the run request if its files, models and search engines are permitted; raise otherwise."""
        spec_or_path, changes = request.spec, read_changes(request.set)
        if request.stored is not None:
            with closing(RunStore(self.settings.store)) as store:
                row = find_run_row(store, request.stored)
            spec = changed_spec(row, changes)
            self._check_spec(spec)
            if spec.combine not in COMBINATIONS and spec.combine != str(self.files.find(spec.combine)):
                raise InputError("name the file by its full path", column="combine")
            return request.model_copy(update={"spec": Path(row.id)})
        if isinstance(spec_or_path, Path):
            spec = read_spec(self.files.find(str(spec_or_path)), changes)
        else:
            spec = spec_from_mapping(with_settings(spec_or_path, changes) if changes else spec_or_path)
        self._check_spec(spec)
        questions = spec.questions
        if questions.dataset not in QUESTION_SETS:
            questions = replace(questions, dataset=str(self.files.find(questions.dataset)))
        # Use full paths, so that the file that is read is the one that was checked.
        combine = spec.combine if spec.combine in COMBINATIONS else str(self.files.find(spec.combine))
        checked = replace(spec, questions=questions, combine=combine)
        return request.model_copy(update={"spec": json.loads(checked.to_json()), "set": {}})

    def check_replay(self, request: ReplayRequest) -> ReplayRequest:
        """Return the request if it names a stored run: notebooks of trees are not run from here."""
        with closing(RunStore(self.settings.store)) as store:
            return request.model_copy(update={"run": find_run_row(store, request.run).id})

    def _check_spec(self, spec: RunSpec) -> None:
        """Raise unless models, search engines, forecaster, options and sizes of a run are permitted."""
        if spec.forecaster not in FORECASTERS:
            hint = f"use {', '.join(FORECASTERS)}"
            raise InputError(f"{spec.forecaster[:80]!r} is not on offer here", column="forecaster", hint=hint)
        # Use current names, so that a former name cannot bypass a limit.
        options = current_options(spec.forecaster, spec.options)
        _check_settings({"trials": spec.trials, "concurrency": spec.concurrency, **spec.sampling, **options})
        self._check_grounder(str(options.get("grounder", GROUNDERS[0])))
        for model in (*spec.models.values(), options.get("deep_model")):
            if model is not None:
                self.model(str(model))
        for engine in spec.search:
            self.engine(engine)
        for name, refused in (
            ("options.unsandboxed", options.get("unsandboxed")),
            ("leakage_filter", not spec.leakage_filter),
            ("questions.leaky_questions", spec.questions.leaky_questions == "keep"),
            # With prices of their own, clients could exceed the budget of this server.
            ("prices", spec.prices),
        ):
            if refused:
                raise InputError("is not on offer here", column=name, hint="leave it out")

    def check_tournament(self, request: TournamentRunRequest) -> TournamentRunRequest:
        """Return the request if it sends nothing and its settings are permitted: only people submit forecasts."""
        if not (request.plan or request.dry_run or (request.sandbox and request.platform == "forecastbench")):
            raise InputError("this server does not submit forecasts", hint="use plan or dry_run")
        if request.config is not None:
            raise InputError("is not on offer here", column="config", hint="use set")
        for name in ("folder", "bucket"):
            if f"tournament.{name}" in request.set:
                raise InputError("this server does not offer it", column=f"set tournament.{name}")
        settings = request.settings()
        self._check_spec(_of_typed_question(settings))
        if not settings.get("models") and request.platform != "forecastbench":
            self.model()
        self._check_sizes(request)
        return request

    def check_results(self, request: TournamentResultsRequest) -> TournamentResultsRequest:
        """Return the request with its method files resolved; raise if one may not be read."""
        self._check_sizes(request)
        return request.model_copy(update={"methods": tuple(self.files.find(str(method)) for method in request.methods)})

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

    def _readable_tree(self, name: str) -> Path:
        try:
            return self._own_tree(name)
        except InputError:
            return self.files.find(name)

    def _own_tree(self, tree: str) -> Path:
        """Return the path of a tree that this server has grown, given its name or file name."""
        folder = (self.settings.home / "trees").resolve()
        if "\x00" not in tree:
            for name in (tree, f"{tree}.json"):
                own_tree = (folder / name).resolve()
                if own_tree.is_relative_to(folder) and own_tree.suffix == ".json" and own_tree.is_file():
                    return own_tree
        raise InputError(f"{tree[:200]!r} is not a tree of this server", hint="grow_tree makes one")

    def check_tables(self, request: ScoreRequest) -> ScoreRequest:
        """Return the request with the tables that were sent as rows, or with their files if those may be read."""
        self._check_sizes(request)
        tables: dict[str, Any] = {"sources": tuple(map(self._source, request.sources))}
        for name in ("forecasts", "outcomes"):
            table: Any = getattr(request, name)
            if isinstance(table, str):
                tables[name] = self.files.find(table)
            elif table is not None and not isinstance(table, list):
                raise InputError("send rows, or the name of a file", column=name)
            elif table is not None and len(cast("list[Any]", table)) > MAX_ROWS:
                raise InputError(f"at most {MAX_ROWS:,} rows can be sent", column=name)
        return request.model_copy(update=tables)

    def _source(self, name: str) -> str:
        """Return the id of a stored run, or the path of a file that may be read.

        Files elsewhere make no difference, so that a client does not learn whether they exist.
        """
        try:
            with closing(RunStore(self.settings.store)) as store:
                return find_run_row(store, name).id
        except InputError:
            if "/" in name or Path(name).suffix:
                return str(self.files.find(name))
            raise

    def _check_grounder(self, grounder: str) -> None:
        if grounder not in GROUNDERS:
            hint = f"use {', '.join(GROUNDERS)}"
            raise InputError(f"the grounder {grounder[:80]!r} is not on offer here", column="grounder", hint=hint)

    def engine(self, name: str | None = None) -> str:
        """Return the search engine to use; raise if it is not offered."""
        if not self.search:
            raise InputError(
                "this server offers no search engine", hint="start foretell mcp with --search local, or another"
            )
        if name is not None and name not in self.search:
            raise InputError(f"{name[:200]!r} is not on offer", hint=f"engines are {', '.join(self.search)}")
        return name or self.search[0]

    def spending(self) -> dict[str, float] | None:
        """Return what the server has cost so far and the limit, in dollars; None if it may not spend."""
        if self.budget is None:
            return None
        return self.budget.money.to_dict() | {"allowed": self.budget.dollars or 0.0}


def _of_typed_question(settings: Mapping[str, Any]) -> RunSpec:
    """Return the spec that settings make for questions that are not from a file; raise if they name a fitted rule."""
    spec = spec_from_mapping({**settings, "questions": "demo"})
    if spec.combine not in COMBINATIONS:
        raise InputError(
            "fitted rules can only be used by run", column="combine", hint=f"use {', '.join(COMBINATIONS)}"
        )
    return spec


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise if one of the settings is larger than a client may request."""
    for name, most in MOST.items():
        size = settings.get(name)
        if size is not None and not isinstance(size, int | float):
            raise InputError("is not a number", column=name)
        if size is not None and not size <= most:
            raise InputError(f"at most {most} are permitted here", column=name)
