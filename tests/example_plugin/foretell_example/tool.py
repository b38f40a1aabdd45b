"""A tool for agents."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from foretell.data.service import ServiceConfig
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf
from foretell.tools.tool import SourceItem, ToolMaterial, required_text


class ExampleTool:
    """Looks a word up. Its results have dates, because the leakage filter drops undated ones in a backtest."""

    spec = ToolSpec(
        name="example_tool",
        description="Look a word up.",
        parameters={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    )

    def __init__(self, config: ServiceConfig) -> None:
        self._http = config.http

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the material as of the cutoff."""
        word = required_text(arguments, "word")
        stamp = datetime(2020, 1, 1, tzinfo=UTC)
        item = SourceItem(
            title=word, text=f"{word} is a word", url="https://words.test/1", published=stamp, dating="published"
        )
        return ToolMaterial(heading=f"About {word}", items=(item,))
