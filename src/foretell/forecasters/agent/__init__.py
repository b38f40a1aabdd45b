"""The belief agent: a model that searches step by step and keeps a probability with its reasons all the way."""
