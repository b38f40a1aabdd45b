"""The tools an agent may call, and the leakage filter."""
