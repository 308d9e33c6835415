"""From a text to a typed value, without I/O."""
