"""The best that is to be had without a language model: the crowd, series, and a small model per kind of question."""
