"""Standing questions: watched from the day they are asked until their outcome is confirmed, and learnt from."""
