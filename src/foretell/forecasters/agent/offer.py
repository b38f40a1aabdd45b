"""What a model is offered at a step: tools with the belief as an argument, or one schema that holds both."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from foretell.forecasters.agent.form import Form
from foretell.forecasters.agent.statement import BELIEF, belief_schema
from foretell.forecasters.agent.submit import submit_spec
from foretell.forecasters.agent.variants import Variant
from foretell.llm.message import ToolSpec
from foretell.tools.names import SUBMIT

TOOL = "tool"
ACTION = "action"
ACTIONS = "actions"
"""Fields of an answer by schema: the belief, and one action or a list of them, each naming its `tool`."""

LONGEST_TEXT = 400
MOST_ITEMS = 5


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The tools of one trial. They stay the same at every step, so that the prompt's prefix does."""

    form: Form
    variant: Variant
    research: tuple[ToolSpec, ...] = ()
    """What the toolbox offers; the answer is added here."""

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Research tools and `submit`, each with the belief as its first argument where the variant has one."""
        research = tuple(spec for spec in self.research if spec.name != SUBMIT) if self.variant.tools else ()
        plain = (*research, submit_spec(self.form))
        return tuple(_with_belief(spec, self.form) for spec in plain) if self.variant.belief else plain

    @cached_property
    def by_name(self) -> Mapping[str, ToolSpec]:
        """The tools by name."""
        return {spec.name: spec for spec in self.tools}

    def named(self, allowed: Collection[str] | None = None) -> tuple[str, ...]:
        """Names on offer at a step: all of them, or those the policy allows."""
        return tuple(name for name in self.by_name if allowed is None or name in allowed) or (SUBMIT,)

    def schema(self, names: Sequence[str]) -> dict[str, Any]:
        """Action and belief as one JSON answer, for models that are asked without tools."""
        actions = [_as_action(self.by_name[name]) for name in names]
        one = actions[0] if len(actions) == 1 else {"anyOf": actions}
        properties: dict[str, Any] = {BELIEF: belief_schema(self.form)} if self.variant.belief else {}
        if self.variant.parallel and len(names) > 1:
            properties[ACTIONS] = {"type": "array", "items": one, "minItems": 1}
        else:
            properties[ACTION] = one
        return _bounded(_object(properties))

    def numbers_alone(self) -> dict[str, Any]:
        """The shortest answer there is, for a model that managed nothing else."""
        return _object({self.form.field: self.form.schema()})


def _with_belief(spec: ToolSpec, form: Form) -> ToolSpec:
    """The same tool with the belief in front: it is stated before the action is chosen in detail."""
    own = spec.parameters
    parameters = {
        **own,
        "type": "object",
        "properties": {BELIEF: belief_schema(form), **own.get("properties", {})},
        "required": [BELIEF, *own.get("required", ())],
    }
    return ToolSpec(name=spec.name, description=spec.description, parameters=parameters)


def _as_action(spec: ToolSpec) -> dict[str, Any]:
    own = {name: value for name, value in spec.parameters.get("properties", {}).items() if name != BELIEF}
    required = [name for name in spec.parameters.get("required", ()) if name != BELIEF]
    action = _object({TOOL: {"type": "string", "enum": [spec.name]}, **own})
    return {**action, "required": [TOOL, *required]}


def _bounded(schema: Any) -> Any:
    """The same schema with an end to every text and list: a small model held by a grammar may never stop by itself."""
    if isinstance(schema, list):
        return [_bounded(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _bounded(part) for name, part in cast("dict[str, Any]", schema).items()}
    if parts.get("type") == "string" and "enum" not in parts:
        return {"maxLength": LONGEST_TEXT, **parts}
    return {"maxItems": MOST_ITEMS, **parts} if parts.get("type") == "array" else parts


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
