"""Titles, captions and notes of the section: what is shown, what the intervals are, and n."""

METHOD_NOTES = {"perfedavg": "internal: after its adaptation step; external: un-adapted"}
"""What is measured otherwise than for the other methods; such methods are marked by †."""

CHOICES = (
    "Aggregated: trained with aggregated BN, external clients with the server's statistics. "
    "Client-specific: client-specific BN, external clients by Eqs. (3), (4), τ = 0.9, batches of "
    "32. "
    "FedBN is FedAvg with client-specific BN, so its run is the one in FedAvg's client-specific "
    "column: inside it has one value for both; outside the clients' mean BN stands on the left and "
    "Eqs. (3), (4) on the right. "
)
PARTED = (
    "The external difference joins two effects, that of the serving and that of the training, "
    "which the table and the figure “gains” part. "
)
HEAD = "MOON's net has its authors' projection head, which the other rows' nets lack. "
APART = "Rows differ not by method alone, but also by {which} (table “settings”). "
SEEDS_ONLY = "of seeds only, not of the test sample, clients or folds"
TUNED = "chosen on validation images"
SEEDS = "{mean}; differences in points, paired by seed{equal}"

ADD_UP = "Where both have the same seeds they add up to Table I's external difference. "
GAINS_TABLE = (
    "Serving: the aggregated model by Eqs. (3), (4) minus with the server's statistics. Training: "
    "client-specific minus aggregated, both by Eqs. (3), (4). "
    + ADD_UP
    + "FedBN is FedAvg's client-specific side. {meta}"
)
MEAN = " Last row: per seed the mean over the methods that have all four cells, here {counted}, "
MEAN_ROW = (
    MEAN + "with the verdict on “higher”, Holm-corrected over the two effects: △ supported, "
    "▽ contradicted, ○ not decided, which does not say that there is no effect."
)
MEAN_MARK = (
    MEAN + "with the Holm-corrected verdict: ▲ higher, ▼ lower, ○ not decided: the interval says "
    "how large an effect the runs leave possible."
)

TABLES: dict[str, tuple[str, str]] = {
    "compatibility": (
        "Nine algorithms, aggregated and client-specific BN (Table I)",
        "Accuracy after {rounds} on {federation}, {net}. Internal: mean over the training "
        "clients{averaged}; external: {left_out}. "
        + CHOICES
        + "{dagger}{parted}{apart}"
        + SEEDS
        + ". Verdicts on “client-specific is higher”, Holm-corrected over the whole table: "
        "△ supported, ▽ contradicted, ○ not decided{power}.",
    ),
    "gains": (
        "What the external difference joins: serving and training",
        "External accuracy after {rounds} on {federation}, {left_out}, by the BN that the "
        "model was trained with and the statistics that serve it: the server's, or Eqs. (3), (4), "
        "τ = 0.9, batches of 32. " + GAINS_TABLE + SEEDS + ".{mean_row}",
    ),
    "worst": (
        "The worst client",
        "Smallest accuracy of a training client after {rounds}, {averaged_worst}"
        "and the client that has it most often. {dagger_inside}" + SEEDS + ".",
    ),
    "rounds": (
        "Rounds to a target and the training loss on the way",
        "Left: rounds until the mean internal test accuracy reaches the target, among the rounds "
        "measured ({measured}): median and range over seeds; a run that diverged before, or never "
        "arrives, counts as later than the last. Right: training loss, mean over the clients and "
        "the measured rounds after the start. {dagger_inside}"
        "{mean}; differences paired by seed{equal}. Verdicts on “client-specific is "
        "lower”, Holm-corrected over the table: "
        "△ supported, ▽ contradicted, ○ not decided{power}.",
    ),
    "settings": (
        "Hyper-parameters",
        "One choice for both BN policies. Chosen on validation images: the highest accuracy, with "
        "one seed, on 20 % of the training images of all clients, those left out later among them, "
        "after training on the rest; no test image was used. At the grid's edge: a wider grid, "
        "made around the authors' defaults as this one, might give another value. Common to all "
        "but for these settings: {schedule}. {head}",
    ),
    "serving": (
        "Ways to serve a client outside the federation",
        "Accuracy on the clients left out after {rounds}, by the statistics that "
        "normalise: the server's; the exponential moving average of Eqs. (3), (4), which starts "
        "from the first batch or from the server's statistics; the batch alone; Eq. (4) with the "
        "spread between batch means added; Eqs. (3), (4) with γ = 1 and β = 0. "
        "Ways other than Table I's were measured with FedAvg, whose client-specific runs are "
        "FedBN's. "
        "{mean}.",
    ),
}

FIGURES: dict[str, tuple[str, str]] = {
    "compatibility": (
        "Aggregated against client-specific BN",
        "Accuracy after {rounds}, sorted by the internal accuracy with client-specific BN. "
        "(a) Mean over the training clients{averaged}. {panel_b}"
        "FedBN is FedAvg with client-specific BN: inside the federation it has one value; outside, "
        "the square is served the clients' mean BN. {dagger}{parted}{apart}"
        "{marks}, cut at 0 and 100; hollow marks lack seeds that "
        "diverged. Beside: client-specific minus aggregated in points, paired by seed{equal}, with "
        "the Holm-corrected verdict: ▲ client-specific is higher, ▼ lower, ○ not decided{power}.",
    ),
    "gains": (
        "What the external difference joins: serving and training",
        "Differences of the accuracy on {left_out}, after {rounds}, in points, paired by "
        "seed{equal}. (a) The aggregated model served by Eqs. (3), (4) minus the same model with "
        "the "
        "server's statistics. (b) Client-specific minus aggregated training, both served by Eqs. "
        "(3), (4). " + ADD_UP + "{meta}{marks}.{mean_mark}",
    ),
    "curves": (
        "Test accuracy by round",
        "Mean test accuracy over the training clients{averaged} at the measured rounds, each "
        "client with the BN that its policy gives it. {dagger_inside}{lines}. "
        "Dotted: the target of the table of rounds, {target} %.{lost}",
    ),
    "losses": (
        "Training loss by round",
        "Mean training loss over the training clients{averaged} at the measured rounds, in eval "
        "mode over the whole split. {dagger_inside}{lines}; "
        "logarithmic axis, bands cut at its ends.{lost}",
    ),
}
