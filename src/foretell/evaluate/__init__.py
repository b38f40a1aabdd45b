"""Numbers over arrays: scores, reliability, returns, comparisons. Knows no question."""
