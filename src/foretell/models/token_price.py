"""What a model charges for tokens."""

from math import inf

from foretell.frozen import frozen
from foretell.models.model import TokenCount
from foretell.questions.field_checks import check_fields


@frozen
class TokenPrice:
    """Dollars per million tokens, and per request."""

    input: float
    output: float
    cached: float | None = None
    """For input read from the provider's cache; None for the full input price."""
    stored: float | None = None
    """For input written to the provider's cache; None for the full input price."""
    request: float = 0.0
    """Dollars for a request as such, besides its tokens."""
    over: int | None = None
    """Requests with more input tokens than this are charged entirely at the price `beyond`."""
    beyond: "TokenPrice | None" = None

    def __post_init__(self) -> None:
        check_fields(self)

    def dollars(self, tokens: TokenCount) -> float:
        """The price of one call."""
        if self.over is not None and self.beyond is not None and tokens.input > self.over:
            return self.beyond.dollars(tokens)
        cached = self.input if self.cached is None else self.cached
        stored = self.input if self.stored is None else self.stored
        fresh = max(0, tokens.input - tokens.cached - tokens.stored)
        input_cost = fresh * self.input + tokens.cached * cached + tokens.stored * stored
        return (input_cost + tokens.output * self.output) / 1_000_000 + self.request

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """The most a call with this many tokens can cost, however much of the input is cached."""
        if self.over is not None and self.beyond is not None and input_tokens > self.over:
            return self.beyond.most(input_tokens, output_tokens)
        reading = max(self.input, self.cached or 0.0, self.stored or 0.0)
        return (input_tokens * reading + output_tokens * self.output) / 1_000_000 + self.request


FREE_OF_CHARGE = TokenPrice(input=0.0, output=0.0)


def read_price(text: str) -> TokenPrice:
    """Parse a price in dollars per million tokens: "input/output", "input/cached/output", or "0" for a free model.

    >>> price = read_price("3/0.3/15")
    >>> price.input, price.cached, price.output, read_price("0.5/2").cached, read_price("0") == FREE_OF_CHARGE
    (3.0, 0.3, 15.0, None, True)
    """
    parts = text.split("/")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if numbers == [0.0]:
        return FREE_OF_CHARGE
    if len(numbers) not in (2, 3) or not all(0 <= number < inf for number in numbers):
        form = "dollars per million tokens read / written, e.g. 0.5/2, or 0 if it is free"
        raise ValueError(f"{text!r} is not a price: write {form}")
    return TokenPrice(input=numbers[0], output=numbers[-1], cached=numbers[1] if len(numbers) == 3 else None)
