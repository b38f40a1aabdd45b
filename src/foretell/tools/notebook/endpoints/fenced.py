"""Any tool behind the fence, such as the web search, as an endpoint: a notebook sees what an agent would see."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf
from foretell.tools.fence import Fenced
from foretell.tools.names import FETCH_WIKIPEDIA, LOOKUP_URL, WEB_SEARCH
from foretell.tools.notebook.endpoint import EndpointFailed, Parameter
from foretell.tools.shelf import Admitted

PATHS = {WEB_SEARCH: "/search/web", LOOKUP_URL: "/search/page", FETCH_WIKIPEDIA: "/search/wikipedia"}


@dataclass(frozen=True, kw_only=True)
class FencedTool:
    """Asks a toolbox. The cutoff is that of its fence, and must be the notebook's."""

    toolbox: Fenced
    tool: str = WEB_SEARCH

    @property
    def path(self) -> str:
        """By the name of the tool."""
        return PATHS.get(self.tool, f"/tool/{self.tool}")

    @property
    def documentation(self) -> str:
        """As shown to the notebook."""
        return (
            f"{self._spec.description}\n"
            'Answer: {"rows": [{"id", "title", "url", "published", "text"}, …]}, empty where nothing could be admitted.'
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the tool."""
        needed = self._spec.parameters.get("required", ())
        return tuple(
            Parameter(name=name, meaning=str(shape.get("description", "")), needed=name in needed)
            for name, shape in self._spec.parameters.get("properties", {}).items()
        )

    async def call(self, params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        """What the fence let through."""
        if as_of.at < self.toolbox.as_of.at:
            raise EndpointFailed("this source stands at a later cutoff than the notebook, so it is closed")
        seen = await self.toolbox.use(self.tool, params)
        if seen.failed:
            raise EndpointFailed(seen.text)
        return {"rows": [_row(self.toolbox.shelf[source_id]) for source_id in seen.source_ids]}

    @property
    def _spec(self) -> ToolSpec:
        return next(spec for spec in self.toolbox.specs() if spec.name == self.tool)


def _row(admitted: Admitted) -> dict[str, Any]:
    published = admitted.published
    return {
        "id": admitted.id,
        "title": admitted.title,
        "url": admitted.url,
        "published": None if published is None else published.isoformat(),
        "text": admitted.shown,
    }
