"""From the text of a reply to a typed value, without I/O.

The input is a text (`read`) or its chunks (`StreamReader`), and a compiled contract. The output is `Accepted` with
every repair, or `Rejected` with the reason.

1. `read` takes valid JSON that satisfies the contract as it is: one call of the validator, no search.
2. `select.Search` reads everything else. It asks its sources in turn, and the first that has an outcome decides: the
   whole text as a scalar or as one object, a JSON string with JSON in it, all places where a bracket opens an answer,
   a quoted text, `key: value` `lines`, a single word or number.
3. Brackets are found by `scanner`, best place first: tags and fences, lines of their own, inline; never in reasoning.
   Each place is a `candidate`. Valid JSON is taken as it is, common damage is repaired by the fast path,
   the rest goes through the tolerant `parser`, whose grammar is in `grammar`.
4. `fit` sees what fits the schema as it is, or in a wrapper; `coerce` fits the rest: names (`undeclared`), types,
   `scalars`. Every conversion is a repair with a path (`node`). The validator of the contract judges the result.
5. `Search` decides between the candidates that fit. `remainder` has the last word: what the value does not contain must
   be harmless, else the reading fails. The word lists are in `phrases`.
6. `payload.TagReader` and `read_block` find a payload that is not the whole reply, `read_event` reads an event or the
   prose in its place. What they find is read by the same search.

Streams: the same `Search` and `TagReader` read a streamed reply (`grow`), in the same loop. A candidate is parsed as
its characters come; it is tried as in a complete text once its end is certain. What more text could change waits:
`grammar` derives from each expression what may still become a match. `partial` holds what is shown, and which of it
is final. At the end the complete text is read by the loop that has read its pieces, so that the outcome is that of
`read`.

Laws, and where they hold: no exception for any text (`parser.Parser.parse`, `read`), time linear in it (a budget in
`Search`, bounded looks in `grammar`), no value that differs from the text without a repair (`coerce`,
`Search._accept`), nothing final that changes without a restart (`partial.JsonPreview`).
"""
