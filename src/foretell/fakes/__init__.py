"""Other people's servers in small: real sockets on this machine that speak their formats."""
