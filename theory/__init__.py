"""Theory of client-specific batch normalization, with certificates."""

from theory.affordable import affordable_width
from theory.assumption import Assumption, check_assumption
from theory.blocks import BlockDiagonal, diagonal_blocks
from theory.centring import centre
from theory.comparison import Verdict, compare_smallest_eigenvalues
from theory.convergence import (
    DecayCheck,
    corollary_iii5,
    corollary_iii6,
    theorem_iii4,
)
from theory.descent import Problem, Trajectory, gradient_descent, linearised_losses
from theory.drift import KernelDrift, kernel_drift, kernel_limits
from theory.federated_descent import (
    FederatedTrajectory,
    federated_descent,
    sample_participants,
)
from theory.finite_width import Jacobian, Kernels, jacobian, kernels, predict
from theory.gram import (
    client_gram_matrix,
    direction_gram_error,
    direction_gram_matrix,
    gram_error,
    gram_matrix,
    normalised_client_gram_matrix,
    normalised_gram_error,
    normalised_gram_matrix,
)
from theory.inequality import Inequality
from theory.kernel_error import kernels_error
from theory.network import Network, initialise
from theory.rates import Rate, RequiredWidth, convergence_rate, required_width
from theory.singular import Diagnosis, diagnose
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue

__all__ = [
    "Assumption",
    "BlockDiagonal",
    "DecayCheck",
    "Diagnosis",
    "Enclosure",
    "FederatedTrajectory",
    "Inequality",
    "Jacobian",
    "KernelDrift",
    "Kernels",
    "Network",
    "Problem",
    "Rate",
    "RequiredWidth",
    "Trajectory",
    "Verdict",
    "affordable_width",
    "centre",
    "check_assumption",
    "client_gram_matrix",
    "compare_smallest_eigenvalues",
    "convergence_rate",
    "corollary_iii5",
    "corollary_iii6",
    "diagnose",
    "diagonal_blocks",
    "direction_gram_error",
    "direction_gram_matrix",
    "federated_descent",
    "gradient_descent",
    "gram_error",
    "gram_matrix",
    "initialise",
    "jacobian",
    "kernel_drift",
    "kernel_limits",
    "kernels",
    "kernels_error",
    "largest_eigenvalue",
    "linearised_losses",
    "normalised_client_gram_matrix",
    "normalised_gram_error",
    "normalised_gram_matrix",
    "predict",
    "required_width",
    "sample_participants",
    "smallest_eigenvalue",
    "theorem_iii4",
]
