"""The live arena: select events, schedule forecast times, build a shared context, forecast and settle."""
