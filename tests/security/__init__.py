"""What a stranger's folder, reply or blueprint may not do: docs/security.md says what is promised."""
