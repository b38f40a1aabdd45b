"""A living benchmark: real events in, every entry on the same context, forecasts on a schedule, results, standings."""
