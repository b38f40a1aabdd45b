"""Studies of proposition trees in a made-up world whose truth is known, and of the same things in real results."""
