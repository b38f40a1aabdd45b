"""The call stack from `foretell ask` to the model stays short."""

import json
import sys
from pathlib import Path

import pytest

import foretell
from foretell.models.model import Reply, Request, ToolCall
from foretell.models.providers.scripted import ScriptedModel

OURS = str(Path(foretell.__file__).parent)
MOST = 15


def our_frames() -> list[str]:
    """The frames of foretell's own code below the caller, innermost first."""
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(OURS):
            frames.append(f"{Path(code.co_filename).relative_to(OURS)}:{code.co_name}")
        frame = frame.f_back
    return frames


def test_ask_reaches_the_model_through_few_layers(tmp_path, monkeypatch, capsys):
    from foretell.cli.main import main

    seen: list[list[str]] = []

    async def complete(self: ScriptedModel, request: Request) -> Reply:
        seen.append(our_frames())
        arguments = json.dumps({"p": 0.3, "reason": "It often does."})
        return Reply(calls=(ToolCall(id="c", name="submit", arguments=arguments),), finish="tool")

    script = tmp_path / "script.jsonl"
    script.write_text("")
    monkeypatch.setattr(ScriptedModel, "complete", complete)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    command = ["foretell", "ask", "Will it snow in Oslo?", "--model", f"scripted:{script}", "--json"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (0, None)
    assert json.loads(capsys.readouterr().out)["p"] == {"yes": 0.3}
    assert len(seen[0]) <= MOST, "\n".join(seen[0])
