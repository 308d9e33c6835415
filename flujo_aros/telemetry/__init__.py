"""Observers and their records: folds over events.

A run emits events (`flujo_aros.events`), each with its scope. Everything here is made from them:

* `otel`: spans and metrics for OpenTelemetry, whose names are in `names`
* `journal`: a database of runs. `records` declares its rows and makes them of events, a thread of the journal
  writes them; the journal and `health` read them
* `logs`: lines for the standard library's `logging`
* `reply`: one reply with its repairs, as terminal and HTML show it; `report` is the HTML page of a run
* `replay`: the recorded replies of a run, read again without a model
* `setup`: the observers that the settings and the environment ask for

Texts of users and models leave only through `masking`."""
