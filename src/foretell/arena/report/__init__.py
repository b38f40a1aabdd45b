"""Pictures, pages and tables made from a scoreboard: HTML, terminal and Markdown say the same thing."""
