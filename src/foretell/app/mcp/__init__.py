"""foretell for assistants: its questions, trees, scores and searches as tools of the Model Context Protocol."""
