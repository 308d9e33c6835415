# The names that other packages and tests use, and where each is defined: `__init__.py` reads this declaration.

from pydantic_ai.agent import AbstractAgent as AbstractAgent

from flujo_aros.host.agent import (
    CallsDeferred as CallsDeferred,
    capability_names as capability_names,
    capability_options as capability_options,
    check_agent as check_agent,
    checked_contract as checked_contract,
    direct_agent as direct_agent,
)
from flujo_aros.host.capability import Aros as Aros
from flujo_aros.host.content import (
    Prompt as Prompt,
    content_at as content_at,
    content_file as content_file,
    with_described_content as with_described_content,
    with_named_content as with_named_content,
    has_content as has_content,
    is_content as is_content,
    why_no_text as why_no_text,
    with_live_content as with_live_content,
    with_saved_content as with_saved_content,
)
from flujo_aros.host.request import Call as Call, redirect_calls as redirect_calls, request_once as request_once
from flujo_aros.host.response import USED_UP as USED_UP, rejects_schema as rejects_schema
from flujo_aros.host.recover import fit_event_fields as fit_event_fields
from flujo_aros.host.models import (
    has_known_price as has_known_price,
    uncounted_calls as uncounted_calls,
    Models as Models,
    ModelSource as ModelSource,
    create_model as create_model,
    named_model as named_model,
    max_call_cost as max_call_cost,
    profile_of as profile_of,
    source_of as source_of,
)
from flujo_aros.host.spec import (
    Approval as Approval,
    Decision as Decision,
    Deferral as Deferral,
    DeferredCall as DeferredCall,
    ENVELOPE as ENVELOPE,
    COMPATIBLE as COMPATIBLE,
    LOCAL_MODEL as LOCAL_MODEL,
    Result as Result,
    endpoint_of as endpoint_of,
    suggest_provider as suggest_provider,
    find_name_error as find_name_error,
    known_models as known_models,
    local_name_error as local_name_error,
    nearest_local as nearest_local,
    object_schema as object_schema,
    unknown_setting as unknown_setting,
    missing_provider as missing_provider,
    wrong_setting as wrong_setting,
    wrong_settings as wrong_settings,
)
from flujo_aros.host.recover import ask_model as ask_model, native_of as native_of
from flujo_aros.host.output import (
    allows_nothing as allows_nothing,
    output_type as output_type,
    output_contract as output_contract,
    wanted_by_agent as wanted_by_agent,
)
from flujo_aros.host.recorded import (
    CallMade as CallMade,
    CallRecorder as CallRecorder,
    PendingCall as PendingCall,
    Question as Question,
    Record as Record,
    record_calls as record_calls,
    recorder as recorder,
)
from flujo_aros.host.stream import Live as Live
from flujo_aros.host.agent import (
    AgentRun as AgentRun,
    Conversation as Conversation,
    conversation_of as conversation_of,
    plain_conversation as plain_conversation,
    run_agent as run_agent,
)
from flujo_aros.host.run import (
    AgentOutputError as AgentOutputError,
    Run as Run,
    recording as recording,
)
from flujo_aros.host.request import is_refused as is_refused, remember_refusal as remember_refusal
from flujo_aros.host.spec import AgentSpec as AgentSpec, OutputMode as OutputMode
from flujo_aros.host.request import instrument_agents as instrument_agents
