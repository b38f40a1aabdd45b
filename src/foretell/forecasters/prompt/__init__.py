"""One prompt on a shared prediction context, in several elicitation variants."""
