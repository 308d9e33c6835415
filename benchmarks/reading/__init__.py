"""Compare readers: verdicts on a corpus, times on documents and floods, as tables and as a page with charts."""
