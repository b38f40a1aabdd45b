"""The journal around an endpoint: an answer is stored before a notebook sees it, and is the same in every replay."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.llm.canonical import content_key
from foretell.questions.clock import AsOf
from foretell.tools.kept import FailedAtSource, Once
from foretell.tools.notebook.endpoint import Endpoint, EndpointFailed, Parameter
from foretell.tools.refusal import Refusal, Refused


@dataclass(frozen=True, kw_only=True)
class KeptEndpoint:
    """An endpoint that reaches off this machine, with its answers and failures in the journal."""

    endpoint: Endpoint
    journal: Once
    scope: str = ""
    """Whatever the answer depends on besides parameters and cutoff."""

    @property
    def path(self) -> str:
        """That of the endpoint."""
        return self.endpoint.path

    @property
    def documentation(self) -> str:
        """That of the endpoint."""
        return self.endpoint.documentation

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the endpoint."""
        return self.endpoint.parameters

    async def call(self, params: Mapping[str, Any], as_of: AsOf) -> Any:
        """The answer, now or when it was first given."""
        asked = {name: str(value) for name, value in params.items()}
        key = content_key(["endpoint", self.path, asked, as_of.at.isoformat(), as_of.mode, self.scope])

        async def produce() -> dict[str, Any]:
            try:
                return {"answer": await self.endpoint.call(params, as_of)}
            except Refused as error:
                return {"failed": str(error), "layer": error.refusal.layer, "reason": error.refusal.reason}
            except EndpointFailed as error:
                return {"failed": str(error), "cause": None if error.__cause__ is None else str(error.__cause__)}

        found = await self.journal.once_json(key, "endpoint", produce)
        if "layer" in found:
            raise Refused(found["failed"], Refusal(layer=found["layer"], reason=found["reason"]))
        if "failed" in found:
            cause = None if found["cause"] is None else FailedAtSource(found["cause"])
            raise EndpointFailed(found["failed"]) from cause
        return found["answer"]
