"""What observers make of events: spans and metrics, a journal on disk, log lines, and what can be told from them."""
