"""Theory of client-specific batch normalization, with certificates."""

from theory.affine_pairs import affine_pair_divergence
from theory.affordable import affordable_width
from theory.assumption import Assumption, check_assumption
from theory.blocks import BlockDiagonal, diagonal_blocks
from theory.bn_kernel import BNGram, bn_client_gram_matrix, bn_gram_matrix, bn_ntk
from theory.bounds import Bound, Term
from theory.capacity import capacity_order, divergence_capacity, risk_capacity
from theory.causal import equation_20, proposition_iii10, test_graph, training_graph
from theory.centring import centre
from theory.clients import client_largest_eigenvalue, client_smallest_eigenvalue
from theory.comparison import Verdict, compare_smallest_eigenvalues
from theory.conditioning import StepSizes, best_factors, condition_number, step_sizes
from theory.convergence import (
    DecayCheck,
    corollary_iii5,
    corollary_iii6,
    theorem_iii4,
)
from theory.covariances import client_covariances
from theory.data import Points, read_points
from theory.descent import Problem, Trajectory, gradient_descent, linearised_losses
from theory.divergence import (
    Gaussian,
    half_space_divergence,
    homogeneous_pair_divergence,
    interval_divergence,
    worst_pair,
)
from theory.do_calculus import Step, backdoor, frontdoor, rule1, rule2, rule3
from theory.drift import KernelDrift, kernel_drift, kernel_limits
from theory.estimated_bound import generalization_bound
from theory.estimated_terms import cross_losses_risk, oracle_ideal_error
from theory.estimates import Estimate, clopper_pearson, held_out_divergence
from theory.federated_descent import (
    FederatedTrajectory,
    federated_descent,
    sample_participants,
)
from theory.finite_width import Jacobian, Kernels, jacobian, kernels, predict
from theory.full_kernel import FullKernelComparison, compare_full_kernels, full_kernel_threshold
from theory.gaussian import TwoLayer, gaussian_risk
from theory.generalization import corollary_iii8, corollary_iii9, theorem_iii7, unseen_clients_bound
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
from theory.half_spaces import LabelledGaussian, half_space_risk, ideal_half_space_error
from theory.hoeffding import EmpiricalRisk, empirical_risk
from theory.hypothesis_pairs import PairClassifier, pair_divergence
from theory.inequality import Inequality
from theory.kernel_error import kernels_error
from theory.laws import (
    FeatureLaws,
    feature_laws,
    normalised_feature_covariance,
    whitened_feature_covariance,
)
from theory.mixtures import (
    MixtureDivergence,
    MixtureRisk,
    counterexample_eq15,
    mixture_divergence,
    mixture_ideal_error,
    mixture_risk,
)
from theory.network import Network, initialise
from theory.pooled import PooledComparison, pooled_comparison, pooled_threshold
from theory.proxy import proxy_a_distance
from theory.rademacher import (
    learned_rademacher_capacity,
    path_norm,
    rademacher_capacity,
    rademacher_complexity,
)
from theory.rates import Rate, RequiredWidth, convergence_rate, required_width
from theory.reading import Reading, Readings, readings
from theory.scenarios import structural_model
from theory.separation import d_separated, mutilated, open_path
from theory.singular import Diagnosis, diagnose
from theory.spectrum import Enclosure, largest_eigenvalue, smallest_eigenvalue
from theory.structural import Domain, StructuralModel, structural_sample
from theory.structural_answers import structural_answer
from theory.structural_risk import Risk, structural_risk
from theory.total_variation import total_variation
from theory.vc import Layer, half_space_vc_dimension, vc_dimension

__all__ = [
    "Assumption",
    "BNGram",
    "BlockDiagonal",
    "Bound",
    "DecayCheck",
    "Diagnosis",
    "Domain",
    "EmpiricalRisk",
    "Enclosure",
    "Estimate",
    "FeatureLaws",
    "FederatedTrajectory",
    "FullKernelComparison",
    "Gaussian",
    "Inequality",
    "Jacobian",
    "KernelDrift",
    "Kernels",
    "LabelledGaussian",
    "Layer",
    "MixtureDivergence",
    "MixtureRisk",
    "Network",
    "PairClassifier",
    "Points",
    "PooledComparison",
    "Problem",
    "Rate",
    "Reading",
    "Readings",
    "RequiredWidth",
    "Risk",
    "Step",
    "StepSizes",
    "StructuralModel",
    "Term",
    "Trajectory",
    "TwoLayer",
    "Verdict",
    "affine_pair_divergence",
    "affordable_width",
    "backdoor",
    "best_factors",
    "bn_client_gram_matrix",
    "bn_gram_matrix",
    "bn_ntk",
    "capacity_order",
    "centre",
    "check_assumption",
    "client_covariances",
    "client_gram_matrix",
    "client_largest_eigenvalue",
    "client_smallest_eigenvalue",
    "clopper_pearson",
    "compare_full_kernels",
    "compare_smallest_eigenvalues",
    "condition_number",
    "convergence_rate",
    "corollary_iii5",
    "corollary_iii6",
    "corollary_iii8",
    "corollary_iii9",
    "counterexample_eq15",
    "cross_losses_risk",
    "d_separated",
    "diagnose",
    "diagonal_blocks",
    "direction_gram_error",
    "direction_gram_matrix",
    "divergence_capacity",
    "empirical_risk",
    "equation_20",
    "feature_laws",
    "federated_descent",
    "frontdoor",
    "full_kernel_threshold",
    "gaussian_risk",
    "generalization_bound",
    "gradient_descent",
    "gram_error",
    "gram_matrix",
    "half_space_divergence",
    "half_space_risk",
    "half_space_vc_dimension",
    "held_out_divergence",
    "homogeneous_pair_divergence",
    "ideal_half_space_error",
    "initialise",
    "interval_divergence",
    "jacobian",
    "kernel_drift",
    "kernel_limits",
    "kernels",
    "kernels_error",
    "largest_eigenvalue",
    "learned_rademacher_capacity",
    "linearised_losses",
    "mixture_divergence",
    "mixture_ideal_error",
    "mixture_risk",
    "mutilated",
    "normalised_client_gram_matrix",
    "normalised_feature_covariance",
    "normalised_gram_error",
    "normalised_gram_matrix",
    "open_path",
    "oracle_ideal_error",
    "pair_divergence",
    "path_norm",
    "pooled_comparison",
    "pooled_threshold",
    "predict",
    "proposition_iii10",
    "proxy_a_distance",
    "rademacher_capacity",
    "rademacher_complexity",
    "read_points",
    "readings",
    "required_width",
    "risk_capacity",
    "rule1",
    "rule2",
    "rule3",
    "sample_participants",
    "smallest_eigenvalue",
    "step_sizes",
    "structural_answer",
    "structural_model",
    "structural_risk",
    "structural_sample",
    "test_graph",
    "theorem_iii4",
    "theorem_iii7",
    "total_variation",
    "training_graph",
    "unseen_clients_bound",
    "vc_dimension",
    "whitened_feature_covariance",
    "worst_pair",
]
