"""Kill `aros resume` repeatedly, and count what ran twice, was lost, or is still reported as running.

    python benchmarks/kills.py               # 40 kills; prints one JSON object, exits with 1 if a guarantee is broken
    python benchmarks/kills.py --kills 5

Each round pauses a run at a question, resumes it, and kills the process (SIGKILL) at a random time while the steps
after the question run. Then the same state is resumed again until the run ends. Every step must have run, and none
more than twice. `aros runs`, `show` and `health` must not report anything as running that no process is
executing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

STEPS: Final = 5
AROS: Final = (sys.executable, "-m", "flujo_aros.cli")
FUNCTIONS: Final = """
import time
from pathlib import Path

def work(value, name):
    with Path("done.txt").open("a", encoding="utf-8") as file:
        file.write(name + "\\n")
        file.flush()
    time.sleep(0.15)
    return value
"""


def blueprint() -> str:
    """Return a blueprint with a question, followed by steps that log each execution."""
    lines = ['version: "0.1"', "name: killed", "steps:", "  - {kind: hitl, name: ask, message: Go on?}"]
    lines += [f"  - {{name: s{n}, uses: 'killed_work:work', params: {{name: s{n}}}}}" for n in range(STEPS)]
    return "\n".join(lines) + "\n"


def aros(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one `aros` command."""
    return subprocess.run([*AROS, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def resume_and_kill(folder: Path, state: str, after: float) -> bool:
    """Resume a run, and return whether the process was killed before the run ended."""
    words = [*AROS, "resume", state, "--answer", "yes", "--allow", "./killed_work.py"]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = folder / "done.txt"
    while process.poll() is None and not done.exists():  # until the first step runs
        time.sleep(0.01)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def one_round(folder: Path, chance: random.Random) -> dict[str, Any]:
    """Pause, resume, kill, and resume again; return how often each step ran and how the run ended."""
    (folder / "done.txt").unlink(missing_ok=True)
    paused = json.loads(aros(folder, "run", "b.yaml", "--input", "x", "--json", "--allow", "./killed_work.py").stdout)
    state = f".aros/paused/{paused['run_id']}.json"
    was_killed = resume_and_kill(folder, state, chance.uniform(0, 0.17 * STEPS))
    status = "completed"
    if (folder / state).exists():
        ended = aros(folder, "resume", state, "--answer", "yes", "--json", "--allow", "./killed_work.py")
        status = json.loads(ended.stdout)["status"] if ended.stdout.strip() else ended.stderr.strip()
    elif was_killed:
        shown = json.loads(aros(folder, "show", paused["run_id"], "--json").stdout)
        status = shown["status"]
    ran = Counter((folder / "done.txt").read_text(encoding="utf-8").split())
    return {"run": paused["run_id"], "killed": was_killed, "status": status, "ran": dict(ran)}


def main() -> int:
    """Print the results."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=40)
    options.add_argument("--seed", type=int, default=7)
    given = options.parse_args()
    os.environ["AROS_JOURNAL"] = ".aros/runs.sqlite"
    with tempfile.TemporaryDirectory() as made:
        folder, chance = Path(made), random.Random(given.seed)
        (folder / "b.yaml").write_text(blueprint(), encoding="utf-8")
        (folder / "killed_work.py").write_text(FUNCTIONS, encoding="utf-8")
        rounds = list[dict[str, Any]]()
        while sum(each["killed"] for each in rounds) < given.kills:
            rounds.append(one_round(folder, chance))
        runs = json.loads(aros(folder, "runs", "--json", "--limit", "1000").stdout)
        shown = [json.loads(aros(folder, "show", each["run"], "--json").stdout) for each in rounds]
        health = aros(folder, "health", "--json").stdout
    result = {
        "kills": sum(each["killed"] for each in rounds),
        "runs": len(rounds),
        "ends": dict(Counter(each["status"] for each in rounds)),
        "steps that ran twice": sum(count == 2 for each in rounds for count in each["ran"].values()),
        "steps that ran more often": sum(count > 2 for each in rounds for count in each["ran"].values()),
        "steps that never ran": sum(STEPS - len(each["ran"]) for each in rounds),
        "steps of a killed process reported as lost or resumed": json.dumps(shown).count('"lost"')
        + json.dumps(shown).count('"resumed"'),
        "reported as running": json.dumps([runs, shown, health]).count('"running"'),
    }
    print(json.dumps(result, indent=2))
    broken = ("steps that ran more often", "steps that never ran", "reported as running")
    return int(any(result[name] for name in broken) or set(result["ends"]) != {"completed"})


if __name__ == "__main__":
    raise SystemExit(main())
