"""The host: runs an agent until its output is a typed value, or until it is clear that there will be none.

It is the only importer of pydantic-ai, and of the local model (`local`).

The input is an agent, a prompt and a contract (`run_agent`), or a pydantic-ai agent with `Aros` as a capability. The
output is an `Outcome` with the stages, the calls and their usage.

There are two paths, chosen in one place (`agent.run_agent`):

1. An `AgentSpec` without tools and capabilities needs no agent graph. `agent.DirectRun` makes one request with
   `request.request_once` and reads the reply.
2. Your own agent, or a spec with tools, is run by pydantic-ai. The hooks of `capability.Aros` read each output
   before it is validated.

Both share one object, `run.Run`: its options, its conversation, its calls, and the `Exchange`, which is the latest
request and everything that resulted from it; `run` says who changes what. `recover.recover` reads the reply; if it
cannot be used, it drives the plan of the ladder (`flujo_aros.recovery`). Each ask of the plan is one more direct
request (`recover.ask_model`).

Around a request: `request` decides in which form the schema is sent (enforced by the provider, in the prompt, or as a
tool), rejects configurations that cannot work, reports the call, opens its spans and reserves it from the caller's
allowance. `stream` shows a streamed reply and ends the stream when the rest is useless. `models` creates models by name
and provides their profiles and prices. `spec` describes an agent and checks the name of its model without importing
pydantic-ai, so blueprints are loaded and linted without it.

Around a reply: `response` decides which errors are data, and finds the answer in a response, in its thinking or in an
error, or the reason why there is none; `output` converts between the user's value and the JSON that pydantic-ai
validates.

Invariants, and the code that enforces each:

- every request of the direct path goes through one function (`request.make_call`), so that an engine can record and
  replay it;
- limits, usage and prices count each call once, failed ones included (`request.count`, `run.Run.spent`);
- control flow, `UsageLimitExceeded` and cancellation pass through; errors that are data are `response.PROVIDER_FAULTS`;
- spans are pydantic-ai's own, with or without an agent graph (`request.AgentSpan`).

Other packages import from here. A name is imported when it is first used; `__init__.pyi` declares them.
"""

from __future__ import annotations

from flujo_aros.lazy import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__, __file__)
