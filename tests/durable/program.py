"""A program with durable runs, killed where WHERE says: `python -m tests.durable.program URL LOG WHERE [INPUT]`."""

import json
import sys
from pathlib import Path

from flujo_aros import Pipeline, Runner
from flujo_aros.durable import Durable
from flujo_aros.telemetry.journal import Journal
from tests.durable.steps import steps

if __name__ == "__main__":
    url, log, die, *rest = sys.argv[1:]
    with Durable(url) as durable:
        journal = Journal(Path(log).with_name("journal.sqlite"))
        pipeline = Pipeline(steps(Path(log), die), name="demo")
        result = Runner(pipeline, engine=durable, journal=journal).run_sync(rest[0] if rest else "hi")
        sys.stdout.write(json.dumps(result.to_dict()))
