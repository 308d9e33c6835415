"""Steps, pipelines and the runner with its completion gate."""
