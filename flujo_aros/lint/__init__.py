"""The linter: what is wrong, or will cost money for nothing, in a blueprint, before a token is spent."""
