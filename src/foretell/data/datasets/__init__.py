"""Public question sets and files of questions."""
