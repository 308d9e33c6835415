"""Every LLM step ends in a typed value you can trust, or in an honest refusal. Never in a silent guess.

Names are imported on first use, so that `from flujo_aros import read` loads no agent framework. The names and their
modules are declared once, in `__init__.pyi`, which is read by type checkers and by this file.
"""

from __future__ import annotations

import sys as _sys

# With `python -m flujo_aros.cli`, Python puts the working directory first on the path, so a `yaml.py` in a downloaded
# folder would run in place of the installed module. The script `aros` has no such entry, and programs that import this
# package keep their path. While Python locates the module to run, `argv` is `["-m"]`.
_COMMAND = ("-m", "flujo_aros.cli")
if _sys.argv[:1] == ["-m"] and not _sys.flags.safe_path and _COMMAND in zip(_sys.orig_argv, _sys.orig_argv[1:]):  # noqa: B905
    del _sys.path[0]

from flujo_aros.lazy import lazy_names as _lazy_names  # noqa: E402 - with the path as it should be

_ELSEWHERE = {
    "StructuredOutputError": "catch OutputError",
    "RequiredOutputContract": "write Output.block(block_key, required_keys)",
    "parse_agent_output": "write read(text, Output.event(kinds, fallback=kind)).value",
    "json_instruction": "write Output.event(kinds, fields).instruction()",
    "build_output_model": "write Output.event(kinds, fields).model",
    "ManifestAgent": "write Ensemble(name, cast=[Manifest(…), …])",
    "ReflectionTracker": "write Manifest(…, memory={'reflection_threshold': …})",
    "EpisodicMemory": "write Manifest(…, memory={'window': …})",
    "StageProjection": "write fold(log, stage), with stage from flujo_aros.ensemble.views",
}
"""Names of other systems, and what to write instead."""

# a star import keeps pydantic's Field
__getattr__, __dir__ = _lazy_names(__name__, __file__, unlisted=("Field",), elsewhere=_ELSEWHERE)
