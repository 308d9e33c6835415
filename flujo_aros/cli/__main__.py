"""`python -m flujo_aros.cli` is `aros`, for when the script is not on the path."""

from flujo_aros.cli.script import main

main()
