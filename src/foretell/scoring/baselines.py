"""Names of the forecasters that every table is compared with, and of the group of all questions."""

ALWAYS_HALF = "always 0.5"
BASE_RATE = "base rate"
MARKET_PRICE = "market price"
BASELINES = (MARKET_PRICE, BASE_RATE, ALWAYS_HALF)
OVERALL = "overall"
