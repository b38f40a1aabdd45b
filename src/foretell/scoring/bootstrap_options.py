"""The option --bootstrap, which sets how intervals are computed."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from foretell.metrics.bootstrap import Resampling
from foretell.questions.errors import InputError, known_names
from foretell.request import setting


class BootstrapOptions(BaseModel):
    """How intervals are computed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    draws: int = Field(default=2000, ge=100)
    """Number of resamples."""
    seed: int = 0
    level: float = Field(default=0.95, gt=0, lt=1)
    """Confidence level."""
    interval: Literal["percentile", "symmetric"] = "percentile"
    """Percentiles, or symmetric about the estimate (Algorithm 1 of Prophet Arena)."""
    cluster: tuple[str, ...] = ()
    """Columns whose values are resampled as a whole; two columns are crossed. Empty for the default of the command."""

    def __str__(self) -> str:
        """The parts that differ from their default, as the command line spells them."""
        changed = {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}
        texts = {name: "+".join(value) if isinstance(value, tuple) else value for name, value in changed.items()}
        return ",".join(f"{name}={text}" for name, text in texts.items())

    @property
    def resampling(self) -> Resampling:
        """The settings of the bootstrap itself."""
        return Resampling(draws=self.draws, seed=self.seed, level=self.level, interval=self.interval)


def read_bootstrap(value: Any) -> Any:
    """Read bootstrap options from a mapping or from text such as draws=5000,cluster=question+day.

    >>> read_bootstrap("draws=5000, cluster=question+day")
    {'draws': '5000', 'cluster': ('question', 'day')}
    """
    if isinstance(value, BootstrapOptions):
        return value
    if isinstance(value, Mapping):
        options = dict(cast("Mapping[str, Any]", value))
    else:
        pairs = [part.partition("=") for part in str(value).split(",") if part.strip()]
        for name, equals, text in pairs:
            if not equals or not text.strip():
                raise InputError(f"{name.strip()!r} is not of the form NAME=VALUE", column="--bootstrap")
        options: dict[str, Any] = {name.strip(): text.strip() for name, _, text in pairs}
    for name in options:
        if name not in BootstrapOptions.model_fields:
            hint = known_names(name, list(BootstrapOptions.model_fields))
            raise InputError(f"has no part {name!r}", column="--bootstrap", hint=hint)
    if isinstance(columns := options.get("cluster"), str):
        options["cluster"] = tuple(column.strip() for column in columns.split("+") if column.strip())
    return options


Bootstrap = Annotated[BootstrapOptions, BeforeValidator(read_bootstrap), WithJsonSchema({"type": "string"})]
"""The type of a request's field `bootstrap`."""
BOOTSTRAP: Any = setting(
    BootstrapOptions(),
    "How intervals are computed: draws=2000,seed=0,level=0.95,interval=percentile|symmetric,cluster=COLUMN+COLUMN; "
    "parts may be left out.",
    metavar="NAME=VALUE,...",
    group="statistics",
)
"""The field `bootstrap` of a request."""
