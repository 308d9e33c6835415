"""Tools for testing your own agents and pipelines: scripted models, noise, faulty providers, and virtual time."""

from __future__ import annotations

from flujo_aros.lazy import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__, __file__)
