"""What an answer hangs on: slopes, importance, paths, spread and ranges."""
