"""Present results: charts, HTML pages, terminal tables, Markdown, CSV."""
