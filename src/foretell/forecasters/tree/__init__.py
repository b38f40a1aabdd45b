"""Trees of claims: grown by agents, computed exactly, and edited with what-if."""
