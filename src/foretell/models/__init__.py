"""Language models: request and reply, router, providers, journal, budget, limits, prices."""
