"""The command `aros`."""
