"""Studies of proposition trees: noise, weights, scale, roles, stability."""
