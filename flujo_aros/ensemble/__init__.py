"""Ensembles: agents that take turns over an event log, each with its own grants, memory and beliefs."""
