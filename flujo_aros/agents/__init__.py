"""The host: the only importer of pydantic_ai."""
