"""A forecaster that sends one prompt with a shared prediction context, in several elicitation variants."""
