"""The backend of simulated CPU devices. Their number is fixed while a backend lives."""

from __future__ import annotations

import jax

_devices = 0


def simulate(count: int) -> None:
    """Have at least `count` simulated devices. The backend only grows, so that restarts stay few."""
    global _devices
    if count <= _devices:
        return
    if _devices:
        # Imported late, since it loads Pallas, which most questions do without.
        from jax.extend.backend import clear_backends

        clear_backends()
    jax.config.update("jax_num_cpu_devices", count)
    _devices = count
