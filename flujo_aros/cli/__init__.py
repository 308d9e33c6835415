"""The `aros` command: `commands` declares the commands; the module of each is imported when it is called."""
