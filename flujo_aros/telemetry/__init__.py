"""Observers and their records.

A run emits events (`flujo_aros.events`), each with its scope. Everything in this package is derived from them:

* `otel`: spans and metrics for OpenTelemetry, whose names are in `names`
* `journal`: a database of runs. `records` declares its rows and derives them from events, a thread of the journal
  writes them, and the journal and `health` read them
* `logs`: lines for the standard library's `logging`
* `reply`: one reply with its repairs, for the terminal and for HTML; `report` is the HTML page of a run
* `replay`: the recorded replies of a run, read again without a model
* `setup`: the observers configured by settings and environment

Texts of users and models leave the process only through `masking`."""
