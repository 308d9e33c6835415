"""`python -m flujo_aros.cli` is `aros`, where the script is not on the path."""

from flujo_aros.cli.script import main

main()
