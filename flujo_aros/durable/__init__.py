"""Durable runs survive crashes, and scale to several machines without code changes.

A run starts as `Runner(pipeline, engine=Durable(url)).run(input)`, or in a queue. One database stores three things: (1)
each *model call*, as one step of DBOS, the only thing recorded inside a step; (2) each *step* of the pipeline, as a row
in a separate table, written before its work and after it has settled; (3) the *run*, whose row records how it ended.
Everything in between, reading and repairing, is pure and is computed again.

After a crash, another process continues the run: settled steps are replayed from (2), and the interrupted step runs
again, with the calls of (1) answered from the record. So a call is recorded once and executed at least once: only the
calls that were in flight at the crash are made, and paid for, again.

`serializer` ensures that only JSON is written to the database and read from it; `store` defines the tables of this
package and the completion gate (`completed` is written only in a transaction that finds no unsettled step); `recorder`
records a run in progress; `liveness` detects dead workers; `limits` shares limits per minute; `engine` combines them;
`handle` gives access to a run from any process.

Nothing else in the package imports `dbos`.
"""

from __future__ import annotations

from flujo_aros.lazy import naming_extra

with naming_extra("flujo_aros.durable", "flujo_aros.durable"):
    from flujo_aros.durable.engine import Durable
    from flujo_aros.durable.handle import DurableHandle
    from flujo_aros.pipeline.per_minute import PerMinute

__all__ = ["Durable", "DurableHandle", "PerMinute"]
