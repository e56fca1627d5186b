"""Plans of the experiments: each section's runs by config, and the functions that compute them."""

from empirical.studies.analysis import analysis_plan
from empirical.studies.divergence import divergence_data
from empirical.studies.experiments import external_study, train_study
from empirical.studies.fit import check_clients
from empirical.studies.grid import GRID, METHODS
from empirical.studies.label_shift import label_shift_study
from empirical.studies.part import study_clients
from empirical.studies.sections import (
    causal_plan,
    compatibility_plan,
    convergence_trainings,
    external_plan,
    generalization_plan,
    internal_plan,
)
from empirical.studies.structural import structural_study, structural_trainings
from empirical.studies.study import Setting, Study
from empirical.studies.tuning import (
    Candidate,
    at_edge,
    choose,
    origin,
    tried,
    tuning_plan,
    tuning_record,
    tuning_rows,
    untuned,
    validation_accuracy,
)

__all__ = [
    "GRID",
    "METHODS",
    "Candidate",
    "Setting",
    "Study",
    "analysis_plan",
    "at_edge",
    "causal_plan",
    "check_clients",
    "choose",
    "compatibility_plan",
    "convergence_trainings",
    "divergence_data",
    "external_plan",
    "external_study",
    "generalization_plan",
    "internal_plan",
    "label_shift_study",
    "origin",
    "structural_study",
    "structural_trainings",
    "study_clients",
    "train_study",
    "tried",
    "tuning_plan",
    "tuning_record",
    "tuning_rows",
    "untuned",
    "validation_accuracy",
]
