"""Federated training with aggregated or client-specific batch normalization (PyTorch)."""

from empirical.algorithm import Algorithm
from empirical.algorithms import ALGORITHMS, build_algorithm
from empirical.batch_checks import DivergedError
from empirical.bn_policy import BN_POLICIES, BNPolicy
from empirical.checkpoint import load_checkpoint, save_checkpoint
from empirical.data import FEDERATIONS, Client, Split, fingerprint, load_federation
from empirical.evaluate import Measurement
from empirical.executor import Progress, Result, TaskError, run_tasks
from empirical.external import Adapted, adapt
from empirical.federate import Run, federate
from empirical.label_shift import LabelShift, label_shift
from empirical.methods import Method, methods
from empirical.models import MODELS, build_model, with_projection_head
from empirical.schedule import Schedule
from empirical.seeds import derive
from empirical.serving import VARIANTS, Served, Serving, serve_external
from empirical.state import FederationState
from empirical.stream import Stream, stream
from empirical.weights import Role, label, load

__all__ = [
    "ALGORITHMS",
    "BN_POLICIES",
    "FEDERATIONS",
    "MODELS",
    "VARIANTS",
    "Adapted",
    "Algorithm",
    "BNPolicy",
    "Client",
    "DivergedError",
    "FederationState",
    "LabelShift",
    "Measurement",
    "Method",
    "Progress",
    "Result",
    "Role",
    "Run",
    "Schedule",
    "Served",
    "Serving",
    "Split",
    "Stream",
    "TaskError",
    "adapt",
    "build_algorithm",
    "build_model",
    "derive",
    "federate",
    "fingerprint",
    "label",
    "label_shift",
    "load",
    "load_checkpoint",
    "load_federation",
    "methods",
    "run_tasks",
    "save_checkpoint",
    "serve_external",
    "stream",
    "with_projection_head",
]
