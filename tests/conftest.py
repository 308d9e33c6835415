"""Property tests are the same at every run: `ci` derives its examples from the test, `dev` looks further afield."""

import os

from hypothesis import HealthCheck, settings

_SLOW_DATA = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("ci", derandomize=True, deadline=None, database=None, suppress_health_check=_SLOW_DATA)
settings.register_profile("dev", deadline=None, max_examples=1_000, suppress_health_check=_SLOW_DATA)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
