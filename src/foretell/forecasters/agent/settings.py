"""The options of the agent: how near to certainty it may go, how long it may work, and which form it has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from foretell.models.model import ModelSettings
from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity, even_chance, scaled

if TYPE_CHECKING:
    from foretell.forecasters.agent.agent import BeliefAgent


@dataclass(frozen=True, kw_only=True)
class Clamp:
    """How near to certainty a submitted probability may come. It bounds what one confident mistake can cost."""

    low: float = 0.05
    high: float = 0.95

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(f"a clamp needs 0 <= low < high <= 1, not [{self.low}, {self.high}]")

    @classmethod
    def read(cls, given: "Clamp | Sequence[float]") -> "Clamp":
        """From two numbers; a clamp stays itself."""
        if isinstance(given, Clamp):
            return given
        if not isinstance(given, list | tuple) or len(given) != 2:
            raise ValueError(f"clamp is {given!r}, write two numbers such as [0.01, 0.99]")
        return cls(low=float(given[0]), high=float(given[1]))

    def apply(self, p: Mapping[str, float], exclusivity: Exclusivity = "independent") -> dict[str, float]:
        """Each probability within the bounds.

        Of m options that exclude each other most must be small: there the lower bound is 2·low/m (equal to `low` for
        two), where "none of them" counts as an option if it can be; and their sum is put right once more.
        """
        low = self.low
        if exclusivity != "independent":
            low = 2 * self.low * even_chance(exclusivity, len(p))
        return scaled({target: min(self.high, max(low, value)) for target, value in p.items()}, exclusivity)


ReplyFormat = Literal["tools", "schema"]


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """How long an agent may work and how it is asked."""

    steps: int = 10
    """Generations in all; at the last one only `submit` is left."""
    seconds: float | None = None
    """How long a trial may work, without the time it waits for its turn or for money. None: `USUAL_SECONDS`, and more
    where the model is slow."""
    reserve: float = 60.0
    """With less time than this left, the next step is the last: an answer beats one more search."""
    retries: int = 2
    """How often a reply that cannot be used is asked for again, within one step."""
    clamp: Clamp = field(default_factory=Clamp)
    reply_format: ReplyFormat = "tools"
    """`schema` for models that cannot call tools: the same action and belief as one JSON answer."""
    sampling: ModelSettings | None = None
    """None: what the run says for the agent's role."""
    source_steps: bool = True
    """Follow the research steps that some sources prescribe."""
    closing_time: bool = False
    """Show in a backtest when the market closes. Some sources report when it really closed, which tells the outcome."""

    def __post_init__(self) -> None:
        if self.steps < 1 or self.retries < 0 or (self.seconds is not None and self.seconds <= 0):
            raise ValueError("an agent needs at least one step, some time, and a count of repetitions >= 0")


@dataclass(frozen=True, kw_only=True)
class AgentVariant:
    """One way to run the loop. Ablations differ in these values and in nothing else.

    >>> FULL.name, FULL.with_signals(crowd=True, prior=False).name
    ('full', 'full+crowd')
    """

    kind: str
    wording: str
    """Which text explains the work to the model."""
    belief: bool = True
    """Every call carries `updated_belief`; without it no prompt and no schema mentions one."""
    tools: bool = True
    """Research tools are offered; without them only `submit` is."""
    parallel: bool = False
    """All calls of one reply are run at once; otherwise only the first is."""
    steps: int | None = None
    """How many generations, where that is part of the variant."""
    crowd: bool = False
    """The market's price is in the prompt and is the belief to start from."""
    prior: bool = False
    """The base rate of such questions is in the prompt and, without a price, is the belief to start from."""

    @property
    def name(self) -> str:
        """The kind with its flags, as shown in tables."""
        return self.kind + "+crowd" * self.crowd + "+prior" * self.prior

    def with_signals(self, *, crowd: bool, prior: bool) -> "AgentVariant":
        """The same variant with other starting signals."""
        return replace(self, crowd=crowd, prior=prior)


FULL = AgentVariant(kind="full", wording="belief")
NOBELIEF = AgentVariant(kind="nobelief", wording="plain", belief=False)
ZERO_SHOT = AgentVariant(kind="zero-shot", wording="alone", belief=False, tools=False, steps=1)
BATCH = AgentVariant(kind="batch", wording="batch", belief=False, parallel=True, steps=2)
VARIANTS = {variant.kind: variant for variant in (FULL, NOBELIEF, ZERO_SHOT, BATCH)}


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The options of the forecaster `agent`, as a run, the command line or a page gives them."""

    asks_models: ClassVar[bool] = True
    former_names: ClassVar[dict[str, str]] = {
        "asking": "reply_format", "bypass": "series_sources", "fixed": "source_steps"
    }  # fmt: skip

    variant: Literal["full", "nobelief", "zero-shot", "batch"] = "full"
    """Variant of the agent: its prompt, its tools and whether it keeps a belief."""
    crowd: bool = True
    """Show the market price and start from it."""
    prior: bool = True
    """Show the base rate of similar questions and, without a price, start from it."""
    steps: int = 10
    """Maximum number of model replies; in the last one it must answer."""
    seconds: float | None = None
    """Seconds that one trial may work (default: 600, and more for a slow model)."""
    reply_format: ReplyFormat = "tools"
    """How the model acts: `tools` by calling tools, `schema` by JSON, for models that cannot call tools."""
    clamp: tuple[float, float] = (0.05, 0.95)
    """Lowest and highest probability that is submitted."""
    series_sources: tuple[str, ...] = ("dbnomics",)
    """Sources whose questions are answered from their time series, without a model."""
    source_steps: bool = True
    """Follow the research steps that some sources prescribe."""

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            hint = f"variants are {', '.join(VARIANTS)}"
            raise InputError(f"there is no variant {self.variant!r}", column="options", hint=hint)
        self.settings  # noqa: B018 - raises now what does not fit

    @property
    def settings(self) -> AgentSettings:
        """As the loop reads them."""
        return AgentSettings(
            steps=self.steps,
            seconds=self.seconds,
            reply_format=self.reply_format,
            source_steps=self.source_steps,
            clamp=Clamp.read(self.clamp),
        )

    def build(self) -> "BeliefAgent":
        """The agent."""
        from foretell.forecasters.agent.agent import BeliefAgent
        from foretell.forecasters.series.forecasters import Auto

        variant = VARIANTS[self.variant].with_signals(crowd=self.crowd, prior=self.prior)
        return BeliefAgent(
            variant=variant, settings=self.settings, bypass={source: Auto() for source in self.series_sources}
        )
