"""Protocols of other benchmarks, and exports to other benchmarks."""
