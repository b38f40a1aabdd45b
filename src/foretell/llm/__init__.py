"""Models by role, with a journal before every use of a reply, budgets, limits and typed answers."""
