"""The answer: the one tool every variant has, and the one place where probabilities are clamped."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretell.forecasters.agent.form import Form
from foretell.llm.message import ToolSpec
from foretell.tools.names import SUBMIT


@dataclass(frozen=True, kw_only=True)
class Clamp:
    """How near to certainty a submitted probability may come. It bounds what one confident mistake can cost.

    >>> Clamp().apply({"yes": 0.999})
    {'yes': 0.95}
    >>> Clamp(low=0, high=1).apply({"yes": 0.999})
    {'yes': 0.999}
    """

    low: float = 0.05
    high: float = 0.95

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(f"a clamp needs 0 <= low < high <= 1, not [{self.low}, {self.high}]")

    def apply(self, p: Mapping[str, float], *, exclusive: bool = False) -> dict[str, float]:
        """Each probability within the bounds.

        Of m exclusive options most must be small: there the lower bound is 2·low/m (equal to `low` for two), and
        the clamped options are divided by their sum once more.
        """
        if not exclusive:
            return {target: min(self.high, max(self.low, value)) for target, value in p.items()}
        clamped = {target: min(self.high, max(2 * self.low / len(p), value)) for target, value in p.items()}
        total = sum(clamped.values())
        return {target: value / total for target, value in clamped.items()}


def submit_spec(form: Form) -> ToolSpec:
    """The tool that ends a trial."""
    reason = {"type": "string", "description": "The case for this answer in two to five sentences."}
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"reason": reason, form.field: form.schema()},
        "required": ["reason", form.field],
        "additionalProperties": False,
    }
    return ToolSpec(name=SUBMIT, description="Give the final answer and end the research.", parameters=parameters)
