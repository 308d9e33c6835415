"""A pipeline as YAML."""
