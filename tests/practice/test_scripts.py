"""Practice models call the tool that they are forced to call."""

import pytest
from tests.forecasters.tree.scripted_tree import SEARCH, model_query

from foretell.models.model import Request, ToolSpec, UserMessage
from foretell.models.structured_output import closed_object
from foretell.practice.models.scripts import agent_script, tree_script

TEXT = {"type": "string"}
SUBMIT = ToolSpec(name="submit", description="", parameters=closed_object({"p": {"type": "number"}, "reason": TEXT}))
SERIES = ToolSpec(name="fetch_series", description="", parameters=closed_object({"id": TEXT}))
READ = ToolSpec(
    name="summarize_results",
    description="",
    parameters=closed_object({"ids": {"type": "array", "items": TEXT}, "question": TEXT}),
)
CONCLUDE = ToolSpec(name="conclude", description="", parameters=closed_object({"report": TEXT}))


@pytest.mark.parametrize("script", [agent_script, tree_script])
@pytest.mark.parametrize("tools", [(SEARCH, READ, SERIES, SUBMIT), (SEARCH, CONCLUDE)], ids=["agent", "leaf"])
def test_a_forced_tool_is_called(script, tools):
    for tool in tools:
        request = Request(
            model="x:searcher", messages=(UserMessage(text="# Question\n\nSnow?"),), tools=tools, force=tool.name
        )
        (call,) = script(model_query(request)).calls
        assert call.name == tool.name
