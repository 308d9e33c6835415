"""What an untrusted folder, reply or blueprint must not be able to do: see docs/security.md."""
