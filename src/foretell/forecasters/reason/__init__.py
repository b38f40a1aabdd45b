"""The forecaster `reason`: research first, a blind estimate, and a tree of cases where taking apart helps."""
