"""The host: runs an agent until its output is a typed value, or until it is clear that there will be none.

It is the only importer of pydantic-ai, and of the local model (`local`).

What comes in is an agent, a prompt and a contract (`run.run_agent`); or a pydantic-ai agent with `Aros` on it. What
comes out is an `Outcome` with the stages, the calls and what they have used.

There are two ways, told apart in one place (`run.run_agent`):

1. An agent of a blueprint (`agent.AgentSpec`) has no tools and needs no agent graph. `direct_run` makes one request, by
   `direct.request_once`, and reads the reply.
2. An agent of one's own is run by pydantic-ai. `capability.Aros` hooks into its run: it reads each output before it is
   validated.

From there on both are the same. `run_state` keeps what is known: the options of the run, a tally of its calls, and the
`Exchange`, which is the latest request and what came of it. `ladder_run.recover` reads the reply; where it cannot be
used, it drives the plan of the ladder (`flujo_aros.recovery`). Each ask of the plan is one more direct request
(`nested_call`). `ladder_run.Run` is the run that is under way: whoever needs to know gets it handed.

Around a request: `schema_request` puts the schema in, as native output, in words or as a tool; `wording` asks in words
where the provider refuses the schema; `preflight` refuses what cannot work; `model_call` reports the call and asks the
caller's allowance; `model` and `runaway` watch a stream and end it where the rest is worth nothing.
Around a reply: `faults` and `error_payload` find the reply in an error; `empty_response` says why there is none;
`output_tools` finds the call that was meant; `envelope` stands between the value of the user and what the host
validates.

Laws, and where they hold:

- every request of the direct way goes through one function (`direct`), so that an engine can record and replay it;
- limits, usage and prices count each call once, failed ones included (`direct.count`, `run_state.RunRecord.counted`);
- control flow, `UsageLimitExceeded` and cancellation pass through; what is data is listed in `faults.PROVIDER_FAULTS`;
- spans are pydantic-ai's own, with or without an agent graph (`spans`).
"""
