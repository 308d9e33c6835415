"""Benchmarks of flujo_aros; not part of the installed package."""
