"""The agent's options: limits on its work, and its variant."""

from dataclasses import field, replace
from typing import Literal

from foretell.forecasters.combine.clamp import Clamp
from foretell.frozen import frozen
from foretell.models.model import ModelSettings
from foretell.questions.errors import WrongValue
from foretell.questions.field_checks import check_least

ReplyFormat = Literal["tools", "schema"]


@frozen
class AgentSettings:
    """Limits on an agent's work, and how it is asked."""

    steps: int = 10
    """Maximum number of generations; in the last one only `submit` is available."""
    seconds: float | None = None
    """Seconds a trial may work, not counting time spent waiting for its turn or for money. None means `USUAL_SECONDS`,
    and more if the model is slow."""
    reserve: float = 60.0
    """Seconds: with less time left than this, the next step is the last."""
    retries: int = 2
    """How many times the model is asked again after unusable replies within one step."""
    clamp: Clamp = field(default_factory=Clamp)
    reply_format: ReplyFormat = "tools"
    """`tools`, or `schema` for models that cannot call tools: the same action and belief as one JSON answer."""
    sampling: ModelSettings | None = None
    """Sampling settings; None uses those of the run for the agent's role."""
    source_steps: bool = True
    """Follow the research steps that some sources prescribe."""
    closing_time: bool = False
    """Show the market's closing time in backtests. Some sources report the real one, which reveals the outcome."""

    def __post_init__(self) -> None:
        check_least(self, steps=1, retries=0)
        if self.seconds is not None and not self.seconds > 0:
            raise WrongValue(type(self).__name__, "seconds", f"is {self.seconds:g}", "more than 0")


@frozen
class AgentVariant:
    """One way to run the loop. Ablations differ in these values and in nothing else.

    >>> FULL.name, FULL.with_signals(market_price=True, prior=False).name
    ('full', 'full+price')
    """

    kind: str
    wording: str
    """Name of the text that explains the task to the model."""
    belief: bool = True
    """Whether every call carries `updated_belief`; if not, no prompt and no schema mentions a belief."""
    tools: bool = True
    """Whether research tools are offered; if not, only `submit` is."""
    parallel: bool = False
    """Whether all calls of one reply run concurrently; if not, only the first one runs."""
    calls: int | None = None
    """Maximum number of calls of one reply that run, if several may; None for all."""
    steps: int | None = None
    """Number of generations, if the variant sets it."""
    market_price: bool = False
    """Whether the market's price is in the prompt and is the starting belief."""
    prior: bool = False
    """Whether the base rate of similar questions is in the prompt and, without a price, is the starting belief."""
    never: bool = False
    """Whether the chance that a date never comes is asked for by itself."""
    answer_in_belief: bool = False
    """Whether the belief of `submit` is the answer; if not, `submit` asks for numbers and reason besides."""
    reading: Literal["brief", "guided"] = "brief"
    """How the results of tools are shown: a name in `tools.reading.STYLES`."""

    @property
    def name(self) -> str:
        """The kind with its flags, as shown in tables."""
        return self.kind + "+price" * self.market_price + "+prior" * self.prior

    def with_signals(self, *, market_price: bool, prior: bool) -> "AgentVariant":
        """The same variant with other starting signals."""
        return replace(self, market_price=market_price, prior=prior)


FULL = AgentVariant(kind="full", wording="belief")
NO_BELIEF = AgentVariant(kind="no-belief", wording="plain", belief=False)
ZERO_SHOT = AgentVariant(kind="zero-shot", wording="alone", belief=False, tools=False, steps=1)
BATCH = AgentVariant(kind="batch", wording="batch", belief=False, parallel=True, steps=2)
VARIANTS = {variant.kind: variant for variant in (FULL, NO_BELIEF, ZERO_SHOT, BATCH)}
