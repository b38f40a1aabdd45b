"""Sources of data for notebooks, each behind one or two paths."""
