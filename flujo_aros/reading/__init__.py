"""From the text of a reply to a typed value, without I/O.

What comes in: a text (`read`) or its pieces (`stream.StreamReader`), and a compiled contract. What goes out: `Accepted`
with every repair, or `Rejected` with the reason.

1. `read` takes valid JSON that satisfies the contract as it is: one call of the validator, no search.
2. `select.Search` reads everything else. `scanner` names the places where an answer could begin, best first: tags and
   fences, lines of their own, inline. Each place becomes a `candidate`: valid JSON is taken as it is, a few local
   defects are spliced (`splice`, `fast_path`), the rest goes through the tolerant `parser`, whose grammar is in
   `grammar`. If no place holds a bracket, `lines` reads `key: value` lines, and single words and numbers are tried.
3. `coerce` fits what was parsed to the schema: names, types, `enum_match`, `amounts`, `dates`, `envelope`. Every
   conversion is a repair with a path (`repairs`). The validator of the contract judges the result.
4. `Search` decides between the candidates that fit. `remainder` has the last word: what the value does not contain must
   be harmless, else the reading fails. The word lists are in `phrases`.
5. `payload` reads tagged, block and event contracts by the same search.

Streams: `incremental` runs the same search over a text that grows and shows `partial` values; the outcome at the end
is that of `read`. Laws: no exception for any text, time linear in it, no value that is wrong without a repair.
"""
