"""One forecast out of several forecasters': equal weights, weights by past skill, greedy selection.

Members are the trials of a `Rows`: one row of the matrix per member. So an ensemble is a `Method` like any other, and
is cross-fitted, guarded, saved and refused its own training askings by the same code as a calibration.
"""
