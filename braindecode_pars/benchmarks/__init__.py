"""Measure training steps, reading and predictions, mostly as ratios of two times of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from braindecode_pars.benchmarks._channel_drop import channel_drop
from braindecode_pars.benchmarks._estimators import estimators
from braindecode_pars.benchmarks._inference import inference
from braindecode_pars.benchmarks._labels import labels
from braindecode_pars.benchmarks._measuring import Row
from braindecode_pars.benchmarks._pair_decoder import decoder_memory, decoder_time
from braindecode_pars.benchmarks._predict_raw import predict_raw
from braindecode_pars.benchmarks._pretext_steps import (
    long_sequence,
    pars_step,
    task_steps,
    tokenizers,
)
from braindecode_pars.benchmarks._reading import reading
from braindecode_pars.benchmarks._training_loop import cuda_loop, training_loop

__all__ = ["BENCHMARKS", "Row"]

#: The benchmarks by their names on the command line.
BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "pars-step": pars_step,
    "task-steps": task_steps,
    "tokenizers": tokenizers,
    "decoder-time": decoder_time,
    "decoder-memory": decoder_memory,
    "long-sequence": long_sequence,
    "channel-drop": channel_drop,
    "reading": reading,
    "labels": labels,
    "training-loop": training_loop,
    "estimators": estimators,
    "inference": inference,
    "predict-raw": predict_raw,
    "cuda": cuda_loop,
}
