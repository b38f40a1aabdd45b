"""The outside view: what past questions like this one say about it, without a model and without the network."""
