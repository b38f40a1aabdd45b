"""From several forecasts of one question to one."""
