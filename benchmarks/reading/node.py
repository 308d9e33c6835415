"""Use an npm package as a parser: one node process serves all calls and measures its own time."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import Any, Final

from benchmarks.reading.lines import Ended, LineProcess

_TIMEOUT: Final = 60.0

SCRIPT: Final = """
const path = require('path'), readline = require('readline'), {createRequire} = require('module');
const places = [process.cwd() + '/', path.join(path.dirname(process.execPath), '..', 'lib') + '/', '/usr/local/lib/'];
let found, version;
for (const place of places) {
  try {
    const load = createRequire(place);
    found = load('jsonrepair').jsonrepair;
    const main = load.resolve('jsonrepair'), root = main.slice(0, main.lastIndexOf('jsonrepair' + path.sep) + 11);
    version = load(path.join(root, 'package.json')).version;
    break;
  } catch (error) { found = undefined; }
}
if (!found) process.exit(1);
console.log(JSON.stringify({version}));
readline.createInterface({input: process.stdin}).on('line', line => {
  const {text, keep, laps, enough} = JSON.parse(line);
  let best = 0, spent = 0, answer = {};
  for (let lap = 0; lap < laps && spent <= enough; lap++) {
    const start = process.cpuUsage();
    try { answer = {outcome: 'value', value: JSON.parse(found(text))}; }
    catch (error) { answer = {outcome: error instanceof RangeError ? 'RangeError' : 'refused'}; }
    const used = process.cpuUsage(start), taken = (used.user + used.system) * 1000;
    best = lap ? Math.min(best, taken) : taken;
    spent += taken;
  }
  if (!keep) delete answer.value;
  console.log(JSON.stringify({...answer, nanos: best}));
});
"""


def node_command() -> list[str]:
    """Return the command that starts node. Raises `ImportError` if node is not installed."""
    node = shutil.which("node")
    if node is None:
        message = "node is not installed"
        raise ImportError(message)
    return [node, "-e", SCRIPT]


class NodeParser:
    """jsonrepair in a long-lived node process; `clock` returns its CPU time, without the communication."""

    def __init__(self, stack: ExitStack) -> None:
        try:
            self._process = stack.enter_context(LineProcess(node_command()))
        except Ended as error:
            message = "jsonrepair is not installed"
            raise ImportError(message) from error
        self._nanos = 0
        self.version = str(self._process.hello["version"])

    def __call__(self, text: str, _schema: object = None) -> Any:
        """Return the value. Raises `ValueError` if jsonrepair rejects the text."""
        question = {"text": text, "keep": True, "laps": 1, "enough": 0}
        answer = self._process.ask(question, timeout=_TIMEOUT)
        self._nanos += int(answer["nanos"])
        if answer["outcome"] != "value":
            raise ValueError(answer["outcome"])
        return answer["value"]

    def clock(self) -> int:
        """Return the nanoseconds of CPU time that node has spent so far."""
        return self._nanos
