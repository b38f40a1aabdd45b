"""The forms the agent comes in, as data: what it keeps, what it may call, and what it is told at the start."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to run the loop. Ablations differ in these values and in nothing else.

    >>> FULL.name, FULL.told(crowd=True, prior=False).name
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

    def told(self, *, crowd: bool, prior: bool) -> "Variant":
        """The same variant with other starting signals."""
        return replace(self, crowd=crowd, prior=prior)


FULL = Variant(kind="full", wording="belief")
NOBELIEF = Variant(kind="nobelief", wording="plain", belief=False)
ZERO_SHOT = Variant(kind="zero-shot", wording="alone", belief=False, tools=False, steps=1)
BATCH = Variant(kind="batch", wording="batch", belief=False, parallel=True, steps=2)
VARIANTS = {variant.kind: variant for variant in (FULL, NOBELIEF, ZERO_SHOT, BATCH)}
