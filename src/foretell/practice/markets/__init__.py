"""Prediction markets for practice."""
