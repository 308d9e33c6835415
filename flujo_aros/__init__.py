"""Every LLM step ends in a typed value you can trust, or in an honest refusal; never in a silent guess.

A name is imported when it is first used, so that `from flujo_aros import read` loads no agent framework. The names and
their modules are declared once, in `__init__.pyi`: type checkers read it, and so does this file.
"""

from __future__ import annotations

import flujo_aros.launch as _launch  # noqa: F401  # pyright: ignore[reportUnusedImport] - before anything else is imported
from flujo_aros.lazy import lazy_names as _lazy_names

__all__, __getattr__, __dir__ = _lazy_names(__name__, __file__)
