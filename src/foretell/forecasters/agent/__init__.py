"""The belief agent: researches step by step and keeps an explicit belief."""
