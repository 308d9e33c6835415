"""What is measured about flujo_aros; not part of the installed package."""
