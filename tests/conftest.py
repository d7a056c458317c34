"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A first draw may compile kernels, and any machine may be busy: no verdict depends on its speed.
settings.register_profile("coldq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("coldq")
