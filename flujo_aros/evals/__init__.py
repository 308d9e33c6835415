"""Evaluations: run a pipeline on labelled cases, and count outputs that are right, wrong or refused.

    from flujo_aros.evals import evaluate_sync

    evaluation = evaluate_sync(pipeline, [("I was charged twice", {"category": "billing"})])
    evaluation.right, evaluation.by_field, evaluation.by_trust

`aros eval` prints the same. `cases` reads rows and pydantic-evals datasets, `stop` runs them concurrently and decides
when to stop early, `replies` caches replies, and `evaluation` uses them all and compares outputs.
"""

from __future__ import annotations

from flujo_aros.lazy import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__, __file__)
