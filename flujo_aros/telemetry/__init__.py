"""Observers and their records: folds over events.

A run emits events (`flujo_aros.events`), each with its scope. Everything here is made from them:

* `otel`: spans (`spans`) and metrics (`metrics`) for OpenTelemetry; `exporting` sends them over OTLP
* `journal`: a database of runs. `records` declares its rows, `recorder` makes rows of events, `writer` writes them on a
  thread, `engine` opens the database, `queries` and `health` read it
* `logs`: lines for the standard library's `logging`
* `reply`: one reply with its repairs, as terminal and HTML show it; `report` is the HTML page of a run
* `replay`: the recorded replies of a run, read again without a model

Texts of users and models leave only through `masking`."""
