"""Test a model and store its capabilities."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretell.frozen import frozen
from foretell.models.check import CapabilityCheck
from foretell.models.names import ModelName
from foretell.models.prices import PriceList
from foretell.models.providers.client import HttpModel
from foretell.models.router import open_provider
from foretell.number_text import dollars
from foretell.operations.requests.setup import ModelsCheckRequest
from foretell.report.result import Result
from foretell.runs.runtime import keep_capabilities
from foretell.runs.settings import CHECKED_MODELS, Settings, load_settings


@frozen
class ModelCheck(Result):
    """The result of testing a model."""

    model: str
    checks: Mapping[str, str]
    """Each check with its result."""
    dollars: float | None
    file: Path | None = None
    """Where the result is stored for later runs."""

    @property
    def ok(self) -> bool:
        """Whether it answered at all."""
        return self.checks["answers"] == "yes"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per check."""
        return [{"check": check, "result": result} for check, result in self.checks.items()]

    def __str__(self) -> str:
        lines = [f"{check:28} {result}" for check, result in self.checks.items()]
        cost = "of unknown price" if self.dollars is None else dollars(self.dollars)
        lines.append(f"Cost: {cost}" + (f". Stored in {self.file}" if self.file else ""))
        return "\n".join(lines)


async def check_model(request: ModelsCheckRequest, settings: Settings | None = None) -> ModelCheck:
    """Test a model with five short requests, and store its capabilities for later runs."""
    settings = settings or load_settings()
    name = ModelName.read(request.model)
    client = open_provider(request.model, settings.keys, address=settings.addresses.get(name.provider))
    trial = CapabilityCheck(model=client, name=request.model, seconds=request.seconds)
    try:
        checks = await trial.run()
    finally:
        await client.close()
    dollars = [PriceList().charged(trial.request(), reply) for reply in trial.replies]
    path = settings.home / CHECKED_MODELS
    if trial.sure:
        learned = client.facts(name.name) if isinstance(client, HttpModel) else None
        keep_capabilities(settings, request.model, trial.found(learned))
    return ModelCheck(
        model=request.model,
        checks=dict(checks),
        dollars=None if None in dollars else sum(cost for cost in dollars if cost is not None),
        file=path if trial.sure else None,
    )
