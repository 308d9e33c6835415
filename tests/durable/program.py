"""A program with durable runs, killed at WHERE: `python -m tests.durable.program URL LOG WHERE [INPUT [RUN]]`."""

import json
import sys
from pathlib import Path

from flujo_aros import Journal, Pipeline, Runner
from flujo_aros.durable import Durable
from flujo_aros.pipeline.runner import Engine
from tests.durable.steps import steps

if __name__ == "__main__":
    url, log, die, *rest = sys.argv[1:]
    given, run_id = (*rest, "hi")[0], (*rest, None, None)[1]

    def main(engine: Engine) -> None:
        journal = Journal(Path(log).with_name("journal.sqlite"))
        pipeline = Pipeline(steps(Path(log), die), name="demo")
        result = Runner(pipeline, engine=engine, journal=journal).run_sync(given, run_id=run_id)
        sys.stdout.write(json.dumps(result.to_dict()))

    if url.startswith("temporal:"):
        from flujo_aros.durable.temporal import Temporal

        main(Temporal(url))
    else:
        with Durable(url) as durable:
            main(durable)
