"""Score the log of an Inspect task: any task whose target is yes or no and whose answers end in a probability.

Needs the extra `inspect`. The mock model always gives the same answer; name your own instead.
"""

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model

import foretell
from foretell.inspect_tasks.tasks import ask_once, brier

samples = [
    Sample(id="rain-oslo", input="Will it rain in Oslo tomorrow?", target="yes"),
    Sample(id="rain-rome", input="Will it rain in Rome tomorrow?", target="no"),
]
model = get_model("mockllm/model", custom_outputs=lambda *_: ModelOutput.from_content("mock", "Probability: 30%"))
eval(Task(dataset=samples, solver=ask_once(), scorer=brier()), model=model, display="none", log_dir="logs")

log = foretell.read_inspect_log("logs", name="mock")
print(log)
board = foretell.score("logs")  # The same in one step.
print(board)
