"""The linter: finds errors and wasted model calls in a blueprint before any tokens are spent."""

from __future__ import annotations

from flujo_aros.lazy import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__, __file__)
