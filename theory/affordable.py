"""The widest network that a memory holds, to be held against the width of Theorem III.4."""

from theory._loose import Flag, Whole
from theory._validate import flag
from theory.network import at_least

_DOUBLE = 8  # bytes


def affordable_width(
    n: Whole, d: Whole, clients: Whole, memory_bytes: Whole, *, isotropic: Flag = True
) -> int:
    """The largest m at which f* can be trained and its kernels looked at in a given memory.

    Theorem III.4 asks for a width (`required_width`); this is the one that a machine can have.
    Counted are the arrays of `gradient_descent` that grow with m, at their peak, in numbers per
    neuron: v five times (the network's, the run's, a copy to look at, the gradient and its
    product with η), activations and their coefficients 7n (of the run and of `kernels`), γ and what
    is as long 8N; for covariances S_i that are matrices S_i v of every client twice. What does not
    grow with m, such as the (n, n) kernels, is small beside them and left out.

    Args:
        n: number of points of all clients together.
        d: number of features.
        clients: number N of clients.
        memory_bytes: bytes of memory.
        isotropic: True for S_i = λI.

    Returns:
        The width, 0 where not even one neuron fits.

    Raises:
        ValueError, TypeError: an argument is no whole number of at least 1, isotropic no flag.
    """
    points, features = at_least(n, 1, "n"), at_least(d, 1, "d")
    count, memory = at_least(clients, 1, "clients"), at_least(memory_bytes, 1, "memory_bytes")
    numbers = 5 * features + 7 * points + 8 * count
    if not flag(isotropic, "isotropic"):
        numbers += 2 * count * features
    return memory // (_DOUBLE * numbers)
