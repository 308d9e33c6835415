"""How findings are written down: for a person, for programs, for code scanning, for GitHub."""
