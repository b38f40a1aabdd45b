"""The live arena: select events, schedule moments, share a context, forecast, settle."""
