"""Measurements beside published ones: `python -m benchmarks SUITE [--quick]`, in a checkout."""
