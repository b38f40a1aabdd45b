"""The agent's options: how close to certainty it may go, how long it may work, and which variant it is."""

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
    """Bounds on a submitted probability. They limit what one confident mistake can cost."""

    low: float = 0.05
    high: float = 0.95

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(f"a clamp needs 0 <= low < high <= 1, not [{self.low}, {self.high}]")

    @classmethod
    def read(cls, given: "Clamp | Sequence[float]") -> "Clamp":
        """Make a clamp from two numbers; return a clamp unchanged."""
        if isinstance(given, Clamp):
            return given
        if not isinstance(given, list | tuple) or len(given) != 2:
            raise ValueError(f"clamp is {given!r}, write two numbers such as [0.01, 0.99]")
        return cls(low=float(given[0]), high=float(given[1]))

    def apply(self, p: Mapping[str, float], exclusivity: Exclusivity = "independent") -> dict[str, float]:
        """Clamp each probability to the bounds.

        Of m options that exclude each other, most must be small. For these the lower bound is 2·low/m (equal to `low`
        for two), where "none of them" counts as an option if it is possible, and the probabilities are then scaled to a
        valid sum again.
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
    """Maximum number of generations; in the last one only `submit` is available."""
    seconds: float | None = None
    """Seconds a trial may work, not counting time spent waiting for its turn or for money. None means `USUAL_SECONDS`,
    and more if the model is slow."""
    reserve: float = 60.0
    """Seconds: with less time left than this, the next step is the last, because an answer beats one more search."""
    retries: int = 2
    """How many times an unusable reply is asked for again within one step."""
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
    """Name of the text that explains the task to the model."""
    belief: bool = True
    """Whether every call carries `updated_belief`; if not, no prompt and no schema mentions a belief."""
    tools: bool = True
    """Whether research tools are offered; if not, only `submit` is."""
    parallel: bool = False
    """Whether all calls of one reply run concurrently; if not, only the first one runs."""
    steps: int | None = None
    """Number of generations, if it is part of the variant."""
    crowd: bool = False
    """Whether the market's price is in the prompt and is the starting belief."""
    prior: bool = False
    """Whether the base rate of such questions is in the prompt and, without a price, is the starting belief."""

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
    """The options of the forecaster `agent`, as set by a run, the command line or a web page."""

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
        """The options as the settings that the loop reads."""
        return AgentSettings(
            steps=self.steps,
            seconds=self.seconds,
            reply_format=self.reply_format,
            source_steps=self.source_steps,
            clamp=Clamp.read(self.clamp),
        )

    def build(self) -> "BeliefAgent":
        """Build the agent."""
        from foretell.forecasters.agent.agent import BeliefAgent
        from foretell.forecasters.series.forecasters import Auto

        variant = VARIANTS[self.variant].with_signals(crowd=self.crowd, prior=self.prior)
        return BeliefAgent(
            variant=variant, settings=self.settings, bypass={source: Auto() for source in self.series_sources}
        )
