"""A tree in other forms: logic program, Bayes net, graphs, and a report in words."""
