"""The same pages as files: a site that opens from disk and lies on any static host."""
