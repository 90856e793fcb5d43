"""Evaluation protocols of other benchmarks, and export of embeddings to other benchmarks."""
