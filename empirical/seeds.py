"""Randomness by purpose: every generator's seed is derived from one seed and what it is for."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from empirical.checks import is_whole


def derive(seed: int, *purpose: str | int) -> int:
    """A seed of 63 bits for one purpose: SHA-256 of the seed and the purpose as JSON.

    Equal arguments give equal seeds on every machine and version; different purposes give
    unrelated ones, so that adding a draw somewhere never moves the draws elsewhere.

    Raises:
        TypeError: the seed is no integer, or a part of the purpose no string or integer.
        ValueError: the seed is negative.
    """
    if not is_whole(seed):
        raise TypeError(f"a seed must be an integer, got {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"a seed must not be negative, got {seed}")
    for part in purpose:
        if not (isinstance(part, str) or is_whole(part)):
            raise TypeError(f"a purpose is made of strings and integers, got {part!r}")
    text = json.dumps([seed, *purpose], separators=(",", ":"), ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(
    seed: int, *purpose: str | int, device: str | torch.device = "cpu"
) -> torch.Generator:
    """A torch generator on `device`, seeded by `derive(seed, *purpose)`."""
    return torch.Generator(device=device).manual_seed(derive(seed, *purpose))


def numpy_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A NumPy generator (PCG64), seeded by `derive(seed, *purpose)`."""
    return np.random.Generator(np.random.PCG64(derive(seed, *purpose)))


@contextmanager
def forked(seed: int, *purpose: str | int, device: str | torch.device = "cpu") -> Iterator[None]:
    """Seeds torch's global generators of the CPU and `device` for one block, then restores them.

    For initialisers and layers such as dropout, which know no other generator.
    """
    place = torch.device(device)
    cuda = [place] if place.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(derive(seed, *purpose))
        if cuda:
            with torch.cuda.device(place):
                torch.cuda.manual_seed(derive(seed, *purpose))
        yield


@contextmanager
def repeatable(device: str | torch.device) -> Iterator[None]:
    """Asks CUDA for the same bits in every run, in full float32, for one block.

    Where an operation has no such implementation torch warns and uses what it has. cuBLAS also
    needs CUBLAS_WORKSPACE_CONFIG, which `run_tasks` sets for its processes. Nothing to do on a CPU.
    """
    if torch.device(device).type != "cuda":
        yield
        return
    cudnn: Any = torch.backends.cudnn
    matmul: Any = torch.backends.cuda.matmul
    before = (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32)
    strict = torch.are_deterministic_algorithms_enabled()
    mild = torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32 = True, False, False
    matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(strict, warn_only=mild)
        cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = before
