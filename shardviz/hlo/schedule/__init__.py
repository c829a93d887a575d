"""Facts of a schedule beyond bytes: overlap, algorithms, collective matmuls."""
