"""What an agent may call. The fence wraps every tool: nothing reaches a model that it did not admit."""
