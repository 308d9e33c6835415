"""Evaluations: a pipeline on labelled cases, with what it got right, what wrong, and where it refused to answer.

    from flujo_aros.evals import evaluate_sync

    evaluation = evaluate_sync(pipeline, [("I was charged twice", {"category": "billing"})])
    evaluation.right, evaluation.by_field, evaluation.by_trust

`aros eval` prints the same. `cases` reads rows and datasets of pydantic-evals, `many` runs them side by side and knows
when to stop, `replies` keeps what was paid for, `scoring` compares, `evaluation` puts it together.
"""

from __future__ import annotations

from flujo_aros.lazy import lazy_names as _lazy_names

__all__, __getattr__, __dir__ = _lazy_names(__name__, __file__)
