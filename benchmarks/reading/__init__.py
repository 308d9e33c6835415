"""Readers side by side: verdicts on a corpus, a speed set of documents and floods, tables and a page with charts."""
