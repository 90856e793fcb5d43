"""What a step, a read and a prediction cost, as ratios of two things measured in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from braindecode_pars.benchmarks.channel_drop import channel_drop
from braindecode_pars.benchmarks.inference import inference
from braindecode_pars.benchmarks.measuring import Row
from braindecode_pars.benchmarks.pair_decoder import decoder_memory, decoder_time
from braindecode_pars.benchmarks.pretext_steps import long_sequence, pars_step, rival_steps
from braindecode_pars.benchmarks.reading import reading
from braindecode_pars.benchmarks.table import as_rst, circumstances
from braindecode_pars.benchmarks.training_loop import cuda_loop, training_loop

__all__ = ["BENCHMARKS", "Row", "as_rst", "circumstances"]

#: Every measurement by its name on the command line.
BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "pars-step": pars_step,
    "rival-steps": rival_steps,
    "decoder-time": decoder_time,
    "decoder-memory": decoder_memory,
    "long-sequence": long_sequence,
    "channel-drop": channel_drop,
    "reading": reading,
    "training-loop": training_loop,
    "inference": inference,
    "cuda": cuda_loop,
}
