"""Arrays in, numbers out: scores, resampling, comparison, power. Knows no question and reads no file."""
