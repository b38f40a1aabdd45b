"""The options of the forecaster `agent`, as users write them."""

from typing import ClassVar, Literal

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import VARIANTS, AgentSettings, ReplyFormat
from foretell.forecasters.combine.clamp import Clamp, ClampName
from foretell.forecasters.series.forecasters import Auto
from foretell.frozen import frozen
from foretell.questions.errors import WrongValue
from foretell.questions.field_checks import check_fields


@frozen
class AgentOptions:
    """The options of the forecaster `agent`, as set by a run, the command line or a web page."""

    asks_models: ClassVar[bool] = True
    former_names: ClassVar[dict[str, str]] = {
        "asking": "reply_format", "bypass": "series_sources", "crowd": "market_price", "fixed": "source_steps"
    }  # fmt: skip
    former_values: ClassVar[dict[str, str]] = {"nobelief": "no-belief"}

    variant: Literal["full", "no-belief", "zero-shot", "batch"] = "full"
    """Variant of the agent: its prompt, its tools and whether it keeps a belief."""
    market_price: bool = True
    """Show the market price and start from it."""
    prior: bool = True
    """Show the base rate of similar questions and, without a price, start from it."""
    steps: int = 10
    """Maximum number of model replies; in the last one it must answer."""
    seconds: float | None = None
    """Seconds that one trial may work (default: 600, and more for a slow model)."""
    reply_format: ReplyFormat = "tools"
    """How the model acts: `tools` by calling tools, `schema` by JSON, for models that cannot call tools."""
    clamp: tuple[float, float] | ClampName = (0.05, 0.95)
    """Lowest and highest probability of a trial: `paper` is 0.05 and 0.95, `once` 0.02 and 0.98 of the answer alone."""
    series_sources: tuple[str, ...] = ("dbnomics",)
    """Sources whose questions are answered from their time series, without a model."""
    source_steps: bool = True
    """Follow the research steps that some sources prescribe."""

    def __post_init__(self) -> None:
        check_fields(self)
        try:
            self.settings  # noqa: B018 - raises an error for invalid options
        except WrongValue as error:
            raise WrongValue(type(self).__name__, error.field, error.problem) from None

    @property
    def settings(self) -> AgentSettings:
        """The options as settings of the loop."""
        return AgentSettings(
            steps=self.steps,
            seconds=self.seconds,
            reply_format=self.reply_format,
            source_steps=self.source_steps,
            clamp=Clamp.read(self.clamp),
        )

    def build(self) -> BeliefAgent:
        """Build the agent."""
        variant = VARIANTS[self.variant].with_signals(market_price=self.market_price, prior=self.prior)
        return BeliefAgent(
            variant=variant, settings=self.settings, bypass={source: Auto() for source in self.series_sources}
        )
