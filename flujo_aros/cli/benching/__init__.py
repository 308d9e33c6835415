"""What `aros bench` measures: cases and their verdicts, readers side by side, documents for the speed set."""
