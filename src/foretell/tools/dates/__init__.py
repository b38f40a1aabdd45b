"""When was this written? Dates in texts of many languages, and which of them a text gives to itself."""
