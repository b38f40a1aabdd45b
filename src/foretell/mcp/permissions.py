"""What a server may do on behalf of strangers: which files, which models, and for how much."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from foretell.models.budget import Budget
from foretell.models.names import ModelName
from foretell.operations.requests.asking import NO_CHOICE, AskRequest
from foretell.operations.requests.runs import RunRequest, RunsResumeRequest
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.requests.tournaments import (
    ForecastBenchRoundRequest,
    TournamentFields,
    TournamentResultsRequest,
)
from foretell.operations.requests.trees import (
    TreeDiffRequest,
    TreeEditRequest,
    TreeExpandRequest,
    TreeGroundRequest,
    TreeHistoryRequest,
    TreeReportRequest,
    TreeRequest,
    TreeResynthesizeRequest,
    WhatIfRequest,
)
from foretell.operations.run import changed_spec
from foretell.questions.errors import InputError
from foretell.request import OperationRequest
from foretell.runs.settings import Settings
from foretell.runs.spec import COMBINATIONS, RunSpec, parse_yaml, read_spec, spec_from_mapping
from foretell.runs.store import RunStore, find_run

Research = TypeVar("Research", AskRequest, TreeRequest, TreeGroundRequest, TreeExpandRequest, TreeResynthesizeRequest)
TreeResearch = TypeVar("TreeResearch", TreeGroundRequest, TreeExpandRequest, TreeResynthesizeRequest)
TreeChange = TypeVar(
    "TreeChange",
    TreeEditRequest,
    TreeGroundRequest,
    TreeExpandRequest,
    TreeResynthesizeRequest,
    TreeHistoryRequest,
)
Visit = TypeVar("Visit", bound=TournamentFields)
MAX_FILE_BYTES = 64_000_000
"""Bytes of a file that is read."""
GLOB_CHARACTERS = frozenset("*?[]{}")
"""Characters that would make a file name a pattern for several files."""
MOST = {"trials": 10, "leaves": 40, "rounds": 3, "nodes": 5000, "steps": 30, "concurrency": 50, "draws": 10_000}
"""The largest values that strangers may ask for."""
GROUNDERS = ("search", "agent", "plain")
"""Grounders that strangers may use: none that runs code or calls other services."""
FORECASTERS = ("agent", "tree", "thoughts", "crowd", "market", "prior", "crowd-else-prior", "outside", "auto")
"""Forecasters that strangers may run: none that reads files by any name."""
QUESTION_SETS = ("demo", "forecastbench")
"""Question sets that strangers may use by name; others are files under the directories on offer."""
WITHHELD = (
    *("out", "unsandboxed", "save", "save_as", "edits", "dataset", "where", "title"),
    *("summary", "bucket", "folder", "practice"),
)
"""Fields of requests that are not offered: those that write files, run code freely or read files by any name."""
MAX_CLAIMS, MAX_ROWS = 20_000, 20_000
"""Claims of a tree, and rows of a table, that can be sent."""
ALLOW_SPENDING = "start foretell mcp with --allow-spending DOLLARS and --model NAME"


@dataclass(frozen=True, kw_only=True)
class ReadableFiles:
    """Folders that may be read from; without any, no file may be read."""

    roots: tuple[Path, ...] = ()

    @classmethod
    def under(cls, folders: Sequence[Path]) -> "ReadableFiles":
        """The files under some folders, which must exist."""
        for folder in folders:
            if not folder.is_dir():
                raise InputError("there is no such directory", path=folder, column="--files")
        return cls(roots=tuple(folder.resolve() for folder in folders))

    def find(self, written: str) -> Path:
        """Find a file by its path; links are followed before it is judged."""
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
    """What a server may do: its settings, models, engines and files."""

    settings: Settings
    """Their budget limits everything that is spent."""
    models: tuple[str, ...] = ()
    """The models on offer; the first is the default."""
    search: tuple[str, ...] = ()
    """The search engines on offer, likewise."""
    files: ReadableFiles = field(default_factory=ReadableFiles)

    @property
    def budget(self) -> Budget | None:
        """What this server may spend; None if nothing."""
        return self.settings.budget

    @property
    def may_spend(self) -> bool:
        """Whether a model may be asked."""
        return self.budget is not None and bool(self.models)

    def defaults(self) -> dict[str, Any]:
        """The model and engines to use if none are named."""
        return {"model": self.models[0] if self.may_spend else NO_CHOICE, "search": list(self.search)}

    def model(self, wanted: str | None = None) -> str:
        """The model to ask, if it is on offer and money is left."""
        if self.budget is None:
            raise InputError("spending is off", hint=ALLOW_SPENDING)
        if not self.models:
            raise InputError("no model is on offer", hint=ALLOW_SPENDING)
        if wanted is not None and wanted not in self.models:
            raise InputError(f"{wanted[:200]!r} is not on offer", hint=f"models are {', '.join(self.models)}")
        chosen = wanted or self.models[0]
        allowed, spent = self.budget.dollars or 0.0, self.budget.spent.dollars
        if spent >= allowed and not ModelName.read(chosen).free:
            raise InputError(f"the budget of this server is spent: ${spent:.4f} of ${allowed:.2f}")
        return chosen

    def check_research(self, request: Research) -> Research:
        """The request, if its models, engines and sizes are on offer."""
        if request.model is not None:
            self.model(str(request.model))
        for model in (*request.roles.values(), getattr(request, "deep_model", None)):
            if model is not None:
                self.model(model)
        for engine in request.search:
            self.engine(engine)
        self._check_sizes(request)
        combine = getattr(request, "combine", "default")
        if combine not in COMBINATIONS:
            self.files.find(combine)
        self._check_grounder(getattr(request, "grounder", GROUNDERS[0]))
        return request

    def _check_sizes(self, request: OperationRequest) -> None:
        for name, most in MOST.items():
            if (getattr(request, name, 0) or 0) > most:
                raise InputError(f"at most {most} are permitted here", column=name)

    def check_run(self, request: RunRequest) -> RunRequest:
        """The run, if its files, models and engines are on offer."""
        spec = request.spec
        found = read_spec(self.files.find(str(spec))) if isinstance(spec, Path) else spec_from_mapping(spec)
        self._check_spec(found)
        questions = found.questions
        if questions.dataset not in QUESTION_SETS:
            questions = replace(questions, dataset=str(self.files.find(questions.dataset)))
        return request.model_copy(update={"spec": json.loads(replace(found, questions=questions).to_json())})

    def check_resume(self, request: RunsResumeRequest) -> RunsResumeRequest:
        """A stored run, if it is on offer with the requested changes."""
        self._check_sizes(request)
        with closing(RunStore(self.settings.store)) as store:
            row = store.run(find_run(store, request.run))
        assert row is not None
        self._check_spec(changed_spec(row, {name: parse_yaml(one) for name, one in request.set.items()}))
        return request

    def _check_spec(self, found: RunSpec) -> None:
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

    def check_tournament(self, request: Visit) -> Visit:
        """A tournament that is only looked at or rehearsed; people send forecasts."""
        rehearsal = isinstance(request, ForecastBenchRoundRequest) and request.rehearse
        if not (request.plan or request.dry_run or rehearsal):
            raise InputError("forecasts are not sent from here", hint="say plan or dry_run; people send them")
        if request.spec is not None:
            raise InputError("a spec is not on offer here", column="spec", hint="name model, search and trials")
        if request.model is not None or not isinstance(request, ForecastBenchRoundRequest):
            request = request.model_copy(update={"model": self.model(request.model)})
        for engine in request.search:
            self.engine(engine)
        self._check_sizes(request)
        return request

    def check_results(self, request: TournamentResultsRequest) -> TournamentResultsRequest:
        """Tournament results with methods whose files may be read."""
        self._check_sizes(request)
        return request.model_copy(update={"methods": tuple(self.files.find(str(one)) for one in request.methods)})

    def check_tree(self, request: WhatIfRequest) -> WhatIfRequest:
        """A tree that was sent, or its file if that may be read."""
        if not isinstance(request.tree, dict):
            return request.model_copy(update={"tree": self.files.find(str(request.tree))})
        claims = len(request.tree.get("nodes", ()))
        if claims > MAX_CLAIMS:
            raise InputError(f"the tree has {claims:,} claims; at most {MAX_CLAIMS:,} can be sent")
        return request

    def check_own_tree(self, request: TreeChange) -> TreeChange:
        """A tree in this server's own folder, the only one it may change."""
        return request.model_copy(update={"tree": self._own_tree(str(request.tree)), "who": request.who or "over MCP"})

    def check_tree_edit(self, request: TreeEditRequest) -> TreeEditRequest:
        """An edit of one of this server's own trees; it asks a model only if that is allowed."""
        if request.rejudge:
            self.model(str(request.model))
        return self.check_own_tree(request)

    def check_tree_research(self, request: TreeResearch) -> TreeResearch:
        """Research on one of this server's own trees, with its models, engines and sizes."""
        return self.check_own_tree(self.check_research(request))

    def check_versions(self, request: TreeDiffRequest) -> TreeDiffRequest:
        """Trees in this server's own folder, or files that may be read."""
        found = {"tree": self._readable_tree(str(request.tree))}
        if request.other is not None:
            found["other"] = self._readable_tree(str(request.other))
        return request.model_copy(update=found)

    def check_report(self, request: TreeReportRequest) -> TreeReportRequest:
        """A report on a tree in this server's own folder, or in a file that may be read."""
        return request.model_copy(update={"file": self._readable_tree(str(request.file))})

    def _readable_tree(self, written: str) -> Path:
        try:
            return self._own_tree(written)
        except InputError:
            return self.files.find(written)

    def _own_tree(self, written: str) -> Path:
        """A tree that this server has grown, by its name or file."""
        folder = (self.settings.home / "trees").resolve()
        if "\x00" not in written:
            for name in (written, f"{written}.json"):
                found = (folder / name).resolve()
                if found.is_relative_to(folder) and found.suffix == ".json" and found.is_file():
                    return found
        raise InputError(f"{written[:200]!r} is not a tree of this server", hint="grow_tree makes one")

    def check_tables(self, request: ScoreRequest) -> ScoreRequest:
        """Tables that were sent as rows, or their files if those may be read."""
        self._check_sizes(request)
        found: dict[str, Any] = {}
        for name in ("forecasts", "outcomes", "costs"):
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
        """The search engine to use."""
        if not self.search:
            raise InputError("no search engine is on offer", hint="start foretell mcp with --search local, or another")
        if wanted is not None and wanted not in self.search:
            raise InputError(f"{wanted[:200]!r} is not on offer", hint=f"engines are {', '.join(self.search)}")
        return wanted or self.search[0]

    def spending(self) -> dict[str, float] | None:
        """What was spent so far, and the limit, in dollars."""
        if self.budget is None:
            return None
        return {"spent": round(self.budget.spent.dollars, 6), "allowed": self.budget.dollars or 0.0}
