"""Recovery of replies that cannot be read: the ladder, as plans that do no I/O.

The input is a `Task` (a contract, the question of the run, where the schema is enforced) and the first `Reply`. The
output is an `Outcome`: accepted, degraded or rejected, with one `Attempt` for each stage that was tried.

1. `read_reply` reads the first reply (`ladder`). If it is accepted, nothing else happens.
2. `Ladder.climb` (`ladder`) goes through its stages in order. A stage that does not handle the reason for the
   rejection, or for which the limits leave no call, is skipped; the attempt says why.
3. A stage (a frozen pydantic model in `stages`, derived from `Rung`) returns a *plan*: a generator that yields an
   `Ask` and is sent a `Reply`. The driver of the plan makes the model calls: the host, a test with `next` and `send`,
   or a replay of recorded replies. That is why sync, async, streamed and durable runs share one implementation.
4. Each reply to a stage is read by the same contract as the first one.

Invariants, and the code that enforces each:

- a repair prompt contains the failing output, the issues and the schema, and nothing else (`prompts`);
- a repair neither changes a correct value nor invents one that the output does not contain (`fidelity`);
- a value that repeats the example of the prompt does not count as an answer (`fidelity`);
- stages and calls stay within the limits, and usage of every call is counted (`ladder`);
- no prompt contains a secret, and secrets are restored unchanged (`flujo_aros.redaction`).
"""

from flujo_aros.recovery.fidelity import (
    Examples as Examples,
    blanks_in as blanks_in,
    grounded as grounded,
    keeping as keeping,
)
from flujo_aros.recovery.ladder import (
    PLAIN_TEXT as PLAIN_TEXT,
    READING as READING,
    Ladder as Ladder,
    ends_by_itself as ends_by_itself,
    ladder_for as ladder_for,
    read_first as read_first,
    read_reply as read_reply,
    report_reading as report_reading,
)
from flujo_aros.recovery.plan import (
    Achieved as Achieved,
    Ask as Ask,
    Evidence as Evidence,
    Native as Native,
    Past as Past,
    Plan as Plan,
    Reply as Reply,
    Rung as Rung,
    Task as Task,
    advance as advance,
    has_form as has_form,
)
from flujo_aros.recovery.prompts import (
    CANNOT_REPAIR as CANNOT_REPAIR,
    ONLY_JSON as ONLY_JSON,
    declined as declined,
    extract_prompt as extract_prompt,
    fenced as fenced,
    form_prompt as form_prompt,
    is_continuation as is_continuation,
    repair_prompt as repair_prompt,
    retry_prompt as retry_prompt,
)
from flujo_aros.recovery.stages import (
    AnyStage as AnyStage,
    Constrain as Constrain,
    Degrade as Degrade,
    Escalate as Escalate,
    Extract as Extract,
    LlmRepair as LlmRepair,
    Patch as Patch,
    Resume as Resume,
    Retry as Retry,
    Salvage as Salvage,
    Simplify as Simplify,
    Synthesize as Synthesize,
    joined as joined,
)
