"""Probabilities that fit each other: the nearest set that could be right, by what a question says about its targets.

Every coherent set here is convex and holds every way the question can come out. So the projection onto it never has a
larger error than what it started from, whatever happens: squared error for the distance `squared`, log loss for `log`.
"""
