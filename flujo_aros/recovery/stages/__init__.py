"""One file for each rung of the ladder."""
