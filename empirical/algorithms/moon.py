"""MOON: FedAvg whose clients keep their representations near those of the received network."""

from torch import Tensor
from torch.nn import functional

from empirical.algorithm import Algorithm, Features
from empirical.checks import LARGEST, is_real


def moon(mu: float = 5.0, temperature: float = 0.5) -> Algorithm:
    """MOON (Li, He and Song 2021, Algorithm 1): the loss of each image gains μ times.

    −log( e^{cos(z, z_glob)/T} / (e^{cos(z, z_glob)/T} + e^{cos(z, z_prev)/T}) ),

    with z, z_glob and z_prev the image's representation (`Features`) by the network in training,
    by the one received in this round and by the client's own at the end of its last one. Nothing
    is added in a client's first round, where there is no previous network (as in the authors'
    code). The authors train a net with a projection head: `with_projection_head`, or
    `build_model(name, seed, projection=256)`.

    Args:
        mu: μ; the default is the authors' for CIFAR-10. 0 is FedAvg.
        temperature: T; the default is the authors'.

    Raises:
        ValueError: μ is no number, negative, or more than float32 holds; T is no positive number,
            or it or 1/T is more than float32 holds.
    """
    if not (is_real(mu) and 0 <= mu <= LARGEST):
        raise ValueError(f"MOON needs a finite mu of at least 0 that float32 holds, got {mu!r}")
    if not (is_real(temperature) and 1 / LARGEST <= temperature <= LARGEST):
        raise ValueError(
            "MOON needs a positive temperature that, like its inverse, float32 holds, got "
            f"{temperature!r}"
        )

    def contrast(features: Features) -> Tensor:
        z = features.z
        if features.previous is None:
            return z.new_zeros(())
        near = _cosine(z, features.received)
        far = _cosine(z, features.previous)
        # e^a / (e^a + e^b) = 1 / (1 + e^(b - a)), which cannot overflow.
        return -mu * functional.logsigmoid((near - far) / temperature).mean()

    return Algorithm(
        "moon",
        "Li, He and Song 2021, Algorithm 1",
        {"mu": mu, "temperature": temperature},
        feature_loss=contrast if mu else None,
    )


def _cosine(z: Tensor, other: Tensor) -> Tensor:
    """Cosine of each row's angle; 0 without a gradient where z is zero and has no direction."""
    return functional.cosine_similarity(z, other, dim=1).where(z.any(1), 0)
