"""All requests: every option that a user can give, with its default and one sentence about it.

Only light imports here: the command line loads these files for `--help`. `foretell.operations.table` names the function
that answers each request.
"""
