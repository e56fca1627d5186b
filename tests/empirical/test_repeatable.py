"""What `repeatable` asks of CUDA; the settings exist, and can be read, without a GPU."""

import torch

from empirical.seeds import repeatable


def settings():
    cudnn = torch.backends.cudnn
    return (
        cudnn.deterministic,
        cudnn.benchmark,
        cudnn.allow_tf32,
        torch.backends.cuda.matmul.allow_tf32,
        torch.are_deterministic_algorithms_enabled(),
    )


def test_cuda_is_asked_for_the_same_bits_and_everything_is_restored():
    before = settings()
    try:
        with repeatable("cuda:0"):
            assert settings() == (True, False, False, False, True)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert settings() == before


def test_a_cpu_is_left_alone():
    before = settings()
    with repeatable("cpu"):
        assert settings() == before
