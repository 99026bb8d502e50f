"""What all tests share."""

from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the code; `make bench` measures time.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
