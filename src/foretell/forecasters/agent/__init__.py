"""The belief agent: researches step by step and keeps a written belief."""
