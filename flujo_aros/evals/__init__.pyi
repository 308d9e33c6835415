# The public names, and where each is defined: `__init__.py` reads this declaration.

from flujo_aros.evals.cases import (
    UNLABELLED as UNLABELLED,
    Case as Case,
    CaseFile as CaseFile,
    read_dataset as read_dataset,
    write_dataset as write_dataset,
)
from flujo_aros.evals.evaluation import (
    CaseResult as CaseResult,
    Evaluation as Evaluation,
    FieldScore as FieldScore,
    Share as Share,
    Verdict as Verdict,
    evaluate as evaluate,
    evaluate_sync as evaluate_sync,
    judge_by as judge_by,
    score as score,
)
from flujo_aros.evals.replies import (
    Replies as Replies,
    ReplyCache as ReplyCache,
)
from flujo_aros.evals.stop import (
    Stop as Stop,
)
from flujo_aros.pipeline.per_minute import PerMinute as PerMinute
