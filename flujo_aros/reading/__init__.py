"""From the text of a reply to a typed value, without I/O.

The input is a string (`read`) or its chunks (`StreamReader`), and a compiled contract. The output is `Accepted` with
every repair, or `Rejected` with the reason.

1. `read` accepts valid JSON that satisfies the contract unchanged: one call of the validator and no search.
2. `select.Search` reads everything else. It tries its sources in turn, and the first one with an outcome decides: the
   whole text as a scalar or as one object, a JSON string with JSON in it, all places where a bracket opens an answer,
   a call of the model, a quoted text, lines, tags or a table (`notations`), or a single word or number.
3. `scanner` finds brackets, best place first: tags and fences, separate lines, inline; never in reasoning. Each place
is a `candidate`. Valid JSON is used unchanged, common damage is repaired by the fast path, and the rest goes through
the tolerant `parser`, whose grammar is in `grammar`.
4. `fit` recognizes values that match the schema, directly or in a wrapper. `coerce` converts the others: names
  (`undeclared`), types, `scalars`. Every conversion is a repair with a path (`node`). The validator of the contract
  checks the result.
5. `Search` decides between the candidates that fit. Finally, `remainder` checks the text that is not in the value:
   unless it is harmless, the reading is rejected. The word lists are in `phrases`; `remarks` recognizes sentences
   in which the writer doubts or corrects the value, and `claims` those that give one of its fields a different value.
6. `payload.TagReader` and `read_block` find a payload that is only part of the reply; `read_event` reads an event, or
  the prose in its place. The same search reads what they find.

Streams: the same `Search` and `TagReader` read a streamed reply (`grow`), in the same loop. A candidate is parsed as
its characters arrive, and is checked as in a complete text once its end is certain. Decisions that more text could
change wait: from each expression, `grammar` derives one for text that may still become a match. `partial` holds the
preview, and which parts of it are final. At the end, the same loop reads the complete text, so the outcome is the same
as that of `read`.

Invariants, and the code that enforces each: reading never raises for any text (`parser.Parser.parse`, `read`), takes
time linear in its length (a budget in `Search`, bounded lookahead in `grammar`), reports every difference from it as a
repair (`coerce`, `Search._accept`), and changes nothing final without a restart (`partial.JsonPreview`).
"""
