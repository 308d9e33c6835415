"""The command `aros`: `commands` declares the commands, and what each does is imported when it is called."""
