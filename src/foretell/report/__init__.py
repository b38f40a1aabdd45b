"""How results look: charts, HTML pages, terminal tables, Markdown, CSV."""
