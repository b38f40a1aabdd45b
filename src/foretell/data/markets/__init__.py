"""Prediction markets: their prices at a point in time, and the events they list now.

Price histories never reveal outcome, status, volume or close time. Listings do, and therefore refuse backtests.
"""
