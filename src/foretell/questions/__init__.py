"""Questions, cutoffs, forecasts, outcomes and events: immutable values without I/O."""
