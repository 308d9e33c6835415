# The public names, and where each is defined: the one declaration, which `__init__.py` reads.

from flujo_aros.agreement import ABSENT as ABSENT, Agreement as Agreement, Field as Field, agree as agree
from flujo_aros.host import AgentSpec as AgentSpec
from flujo_aros.host import Aros as Aros
from flujo_aros.host import output_type as output_type
from flujo_aros.host import recording as recording
from flujo_aros.blueprint.load import load_blueprint as load_blueprint
from flujo_aros.contract import (
    Block as Block,
    CompletionSignal as CompletionSignal,
    Event as Event,
    Output as Output,
    winner_in as winner_in,
    with_checks as with_checks,
)
from flujo_aros.ensemble.log import EventLog as EventLog, LogEvent as LogEvent, fold as fold
from flujo_aros.ensemble.manifest import Manifest as Manifest
from flujo_aros.ensemble.step import Ensemble as Ensemble
from flujo_aros.errors import (
    ArosError as ArosError,
    BlueprintError as BlueprintError,
    ContractError as ContractError,
    LimitReached as LimitReached,
    LocalModelError as LocalModelError,
    TemplateError as TemplateError,
    UsageError as UsageError,
)
from flujo_aros.events import Observer as Observer, observing as observing
from flujo_aros.outcome import (
    Accepted as Accepted,
    Attempt as Attempt,
    Degraded as Degraded,
    Issue as Issue,
    Outcome as Outcome,
    OutputError as OutputError,
    Reason as Reason,
    Rejected as Rejected,
    Repair as Repair,
    Risk as Risk,
    Trust as Trust,
)
from flujo_aros.pipeline.agree import Agree as Agree
from flujo_aros.pipeline.bound import Bound as Bound, bound as bound
from flujo_aros.pipeline.control import Branch as Branch
from flujo_aros.pipeline.control import Cached as Cached
from flujo_aros.pipeline.condition import check as check
from flujo_aros.pipeline.human import Human as Human
from flujo_aros.pipeline.execution import idempotency_key as idempotency_key
from flujo_aros.pipeline.control import Import as Import, OutputMapping as OutputMapping
from flujo_aros.pipeline.control import Loop as Loop, StateUpdate as StateUpdate
from flujo_aros.pipeline.fanout import Map as Map
from flujo_aros.pipeline.model import Pipeline as Pipeline, StepLimits as StepLimits
from flujo_aros.pipeline.fanout import Parallel as Parallel
from flujo_aros.pipeline.results import PausedRun as PausedRun
from flujo_aros.pipeline.step import Coercion as Coercion
from flujo_aros.pipeline.step import Processing as Processing
from flujo_aros.pipeline.results import (
    RunResult as RunResult,
    RunStatus as RunStatus,
    StepResult as StepResult,
    StepStatus as StepStatus,
)
from flujo_aros.pipeline.runner import Runner as Runner
from flujo_aros.pipeline.runner import InProcess as InProcess
from flujo_aros.pipeline.step import Call as Call, Step as Step
from flujo_aros.pipeline.runner import StreamEvent as StreamEvent
from flujo_aros.reading.partial import Partial as Partial
from flujo_aros.reading.read import (
    Limits as Limits,
    normalize_json_text as normalize_json_text,
    parse_and_validate as parse_and_validate,
    read as read,
)
from flujo_aros.reading.read import StreamReader as StreamReader
from flujo_aros.recovery.ladder import Ladder as Ladder
from flujo_aros.recovery.plan import Evidence as Evidence
from flujo_aros.recovery.stages import (
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
)
from flujo_aros.settings import Settings as Settings, current_settings as current_settings
from flujo_aros.telemetry.journal import Journal as Journal
from flujo_aros.telemetry.logs import Logging as Logging
from flujo_aros.telemetry.otel import OpenTelemetry as OpenTelemetry
from flujo_aros.usage import Usage as Usage
