"""Every rule: those of the loader in `loader`, every other in a file of its own."""

from __future__ import annotations

from typing import Final

from flujo_aros.lint.rule import Rule
from flujo_aros.lint.rules.loader import LOADER_RULES
from flujo_aros.lint.rules.v_a5 import UnusedOutput
from flujo_aros.lint.rules.v_a8 import ImpliedStructuredOutput
from flujo_aros.lint.rules.v_a9 import UnknownLocalModel
from flujo_aros.lint.rules.v_c1 import UnmergeableOutput
from flujo_aros.lint.rules.v_cf1 import EndlessLoop
from flujo_aros.lint.rules.v_cf2 import UnreachableBranch
from flujo_aros.lint.rules.v_l1 import LoopWithoutExit
from flujo_aros.lint.rules.v_o1 import TagNotInPrompt
from flujo_aros.lint.rules.v_o2 import MaxTokensTooSmall
from flujo_aros.lint.rules.v_o3 import SchemaLoss
from flujo_aros.lint.rules.v_o4 import EnumWithoutEscape
from flujo_aros.lint.rules.v_o5 import VerdictBeforeReasoning
from flujo_aros.lint.rules.v_o6 import OverlappingUnion
from flujo_aros.lint.rules.v_o7 import NoSchemaMode
from flujo_aros.lint.rules.v_p1 import ParallelWriteConflict
from flujo_aros.lint.rules.v_r1 import UnreachableStage
from flujo_aros.lint.rules.v_r2 import LadderBeyondLimits
from flujo_aros.lint.rules.v_r3 import DegradedTextForObject
from flujo_aros.lint.rules.v_t1 import OutputOfPreviousStep
from flujo_aros.lint.rules.v_t5 import MissingKey
from flujo_aros.lint.rules.v_x1 import SecretInBlueprint

RULES: Final[tuple[type[Rule], ...]] = (
    *LOADER_RULES,
    *(UnusedOutput, ImpliedStructuredOutput, UnknownLocalModel, UnmergeableOutput),
    *(EndlessLoop, UnreachableBranch, LoopWithoutExit),
    *(TagNotInPrompt, MaxTokensTooSmall, SchemaLoss, EnumWithoutEscape, VerdictBeforeReasoning, OverlappingUnion),
    *(NoSchemaMode, ParallelWriteConflict, UnreachableStage, LadderBeyondLimits, DegradedTextForObject),
    *(OutputOfPreviousStep, MissingKey, SecretInBlueprint),
)
"""All rules, in the order in which they are asked."""
