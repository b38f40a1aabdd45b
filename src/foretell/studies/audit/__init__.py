"""The leak audit: did anything from after the cutoff reach a forecast?"""
