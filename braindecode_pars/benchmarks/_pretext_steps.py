"""Time of a training step of each pretext task, relative to the encoder alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn

from braindecode_pars.benchmarks._measuring import Row, ratio
from braindecode_pars.pretext import MAE, MP3, PARS, DropPos
from braindecode_pars.tokens import extract_patches, instance_norm

__all__ = ["long_sequence", "pars_step", "task_steps", "tokenizers"]


def step_of(task: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    """Return a forward and backward pass of the task."""

    def step() -> None:
        task.zero_grad()
        task.criterion()(*task(x)).backward()

    return step


def encoder_of(task: PARS, x: torch.Tensor) -> Callable[[], None]:
    """Return a forward and backward pass of the encoder alone, on the same number of patches."""

    def step() -> None:
        task.zero_grad()
        patches = extract_patches(instance_norm(x), task.sample_starts(len(x)), task.patch_size)
        task.encoder(task.encoder.tokenize(patches)).square().mean().backward()

    return step


def pars_step() -> Iterator[Row]:
    """Time steps of PARS at the paper's size, with 40 patches and batch size 16."""
    torch.manual_seed(0)
    task, x = PARS(6000), torch.randn(16, 6000)
    step = step_of(task, x)

    def literal() -> None:
        task.decoder.method = "literal"
        step()
        task.decoder.method = "factorized"

    yield Row(
        "PARS step, literal / factorised decoder", ratio(literal, step, 7), aim=3.3, under=2.5
    )
    yield Row("PARS step / bare encoder", ratio(step, encoder_of(task, x), 9), aim=1.13, over=1.3)


def task_steps() -> Iterator[Row]:
    """Time steps of MAE, MP3 and DropPos at the paper's size and batch size 16.

    The reference is the encoder on the tokens that the task encodes, with the same key mask.
    """
    for kind in (MAE, MP3, DropPos):
        torch.manual_seed(0)
        task, x = kind(6000), torch.randn(16, 6000)

        # Record the arguments of the encoder in one step of the task.
        calls: list[tuple] = []
        hook = task.encoder.register_forward_pre_hook(lambda _, args: calls.append(args))  # noqa: B023
        task(x)
        hook.remove()
        n_tokens, key_mask = calls[0][0].shape[1], calls[0][1:]

        def encoder_alone() -> None:
            task.zero_grad()  # noqa: B023
            patches = task.patches(x)[:, :n_tokens]  # noqa: B023
            tokens = task.encoder.tokenize(patches)  # noqa: B023
            task.encoder(tokens, *key_mask).square().mean().backward()  # noqa: B023

        what = f"{kind.__name__} step / bare encoder on {n_tokens} tokens"
        rounds = 9 if kind is MAE else 5  # MAE is near its bound
        yield Row(what, ratio(step_of(task, x), encoder_alone, rounds), aim=1.2, over=1.4)


def long_sequence() -> Iterator[Row]:
    """Time steps of PARS on 240 one-second patches from three minutes, with batch size 8."""
    torch.manual_seed(0)
    task, x = PARS(36_000, n_patches=240), torch.randn(8, 36_000)
    value = ratio(step_of(task, x), encoder_of(task, x), 7)
    yield Row("PARS step / bare encoder, 240 patches, batch 8", value, aim=1.35, over=1.35)


def tokenizers() -> Iterator[Row]:
    """Time steps of PARS with spectral and with linear tokens, at both sizes, with 30-s windows.

    The small size is that of the estimators. The batch has 64 windows at 100 Hz, or 16 at 200 Hz.
    """
    sizes = {
        "small": (3000, 100, 64, dict(embed_dim=64, num_layers=2, num_heads=4, mlp_dim=128)),
        "the paper's": (6000, 200, 16, {}),
    }
    for name, (n_times, patch_size, batch_size, size) in sizes.items():
        torch.manual_seed(0)
        x = torch.randn(batch_size, n_times)
        spectral, linear = (
            step_of(PARS(n_times, patch_size, tokenizer=tokenizer, **size), x)
            for tokenizer in ("spectral", "linear")
        )
        what = f"PARS step, spectral / linear tokens, {name} size"
        yield Row(what, ratio(spectral, linear, 5), aim=1.1, over=1.25)
