"""Check that the peak memory of `aros run --inputs` does not grow with the number of rows.

python benchmarks/rows.py                      # 1,000 and then 10,000 rows of a function step, with a journal
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLUEPRINT = """
version: "0.1"
name: rows
steps: [{name: keep, uses: flujo.builtins.wrap_dict, params: {key: note}}]
"""
MEASURED = """
import resource, runpy, sys
sys.argv = ["aros", *sys.argv[1:]]
try:
    runpy.run_module("flujo_aros.cli", run_name="__main__")
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def measure(folder: Path, rows: int) -> dict[str, float]:
    """Run one command on this number of rows; return its seconds, peak memory and completed rows."""
    source, results = folder / f"{rows}.jsonl", folder / f"{rows}.out.jsonl"
    source.write_text("".join(f'{{"input": "row {n}", "id": "r{n}"}}\n' for n in range(rows)), encoding="utf-8")
    arguments = ["run", "b.yaml", "--inputs", source.name, "--output", results.name]
    began = time.monotonic()
    process = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began
    peak = next(int(line.split()[1]) for line in process.stderr.splitlines()[::-1] if line.startswith("peak "))
    unit = 1024 if sys.platform == "darwin" else 1  # macOS reports bytes, other systems kilobytes
    with results.open(encoding="utf-8") as lines:
        completed = sum(json.loads(line)["status"] == "completed" for line in lines)
    return {"rows": rows, "completed": completed, "seconds": round(seconds, 1), "peak_mb": round(peak / unit / 1024, 1)}


def main() -> int:
    """Print the figures for each number of rows; return 1 if the memory grows or a row is not completed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", default="1000,10000", help="separated by commas, the smallest first")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "b.yaml").write_text(BLUEPRINT, encoding="utf-8")
        found = [measure(folder, int(rows)) for rows in given.rows.split(",")]
    for each in found:
        print(json.dumps(each))
    all_completed = all(each["completed"] == each["rows"] for each in found)
    return int(not all_completed or found[-1]["peak_mb"] > 1.2 * found[0]["peak_mb"])


if __name__ == "__main__":
    raise SystemExit(main())
