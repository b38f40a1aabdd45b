"""What an agent may call, and the fence that keeps the future out."""
