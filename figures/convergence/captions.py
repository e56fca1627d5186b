"""Titles and captions of the section's figures: what is shown, what the intervals are, and n."""

CAPTIONS: dict[str, tuple[str, str]] = {
    "smallest_eigenvalues": (
        "Corollary III.6 over clients and samples",
        "Smallest and largest eigenvalue of G∞ (Eq. 10, α = 1) and of the block-diagonal G*∞ "
        "(Eq. 11) for points centred by the mean of all their client's points. Lines: median over "
        "{draws} draws of clients and samples; bands: range over the draws; dots: every draw. "
        "The enclosures of single eigenvalues are narrower than the lines (relative width at "
        "most {width}). {whole} "
        "Client-specific BN raises λ_min and lowers λ_max.",
    ),
    "spectra": (
        "Spectra on all {items}",
        "All {points} eigenvalues of G∞ and of G*∞ on {data}, and the smallest of them with the "
        "client whose block they belong to. The first point on the left is the λ_min that the "
        "corollary compares.",
    ),
    "pooled": (
        "Where the corollary stops: a pooled S",
        "Aggregated BN read as one S = Σ p_i S_i in G∞, client-specific BN as S_i in G*∞. (a) Two "
        "unit vectors at an angle θ, S_i = λ_i I, p_1 the weight of the larger variance: below "
        "its line λ_min(G*∞) < λ_min(G∞), shaded for p_1 = 0.5; for two orthogonal vectors where "
        "λ_2/λ_1 < 1 − 2/π. Star: the counterexample. (b) {reading_draws} draws of clients and "
        "samples (d = {reading_dimension}), S_i the client's covariance, or λ_i I of the same "
        "trace: G∞ with the S_i, as the proof needs, and with the pooled S. Crosses: certified to "
        "fail.",
    ),
    "full_kernel": (
        "Where the corollary stops: the full kernel Λ = V/α² + G",
        "(a) Two points at an angle θ, one per client, S = λI, of any lengths: "
        "λ_min(Λ*∞) < λ_min(Λ∞) below α*, α*² = 2 + 2d e/(tan e − e) with e = π − θ, shaded for "
        "d = 10; √2 at 90° in every dimension, without bound towards 180°. (b) The pair of the "
        "star over α. (c) Draws of clients and samples as in the figure before, {reading_kind}: "
        "median over {reading_draws} draws; bands: range.",
    ),
    "step_sizes": (
        "What the corollary says besides: larger steps",
        "G*∞ is a mean of matrices with the eigenvalues of G∞, so that λ_max falls as λ_min "
        "rises: η = 1/λ_max grows by λ_max(G∞)/λ_max(G*∞), and the best factor over η, "
        "1 − 1/(2κ) or (κ − 1)/(κ + 1), depends on κ = λ_max/λ_min alone. Lines: median over the "
        "draws of clients and samples behind the first figure; bands: range.",
    ),
    "exact": (
        "The exact kernel of BN: what the ridge and the dimension do",
        "G∞ with the factor 1/(‖v‖_S_i ‖v‖_S_j) that the networks have, and its blocks, computed "
        "by quadrature with a certified error. S_i: the clients' covariances in the k leading "
        "directions of all clients, plus ρ (tr S_i/k) I; the same points throughout. The "
        "enclosures are narrower than the lines. A mark is missing where S_i are singular in "
        "different directions, so that there is no kernel.",
    ),
    "decay": (
        "Decay of f and f* on {source}",
        "Full-batch gradient descent on ½‖f − y‖² for N clients of M points in d dimensions, "
        "S_i = I, labels ±1, width m = {m}, first draw. Upper row: both nets with the smaller "
        "of the two 1/λ_max(Λ(0)); lower row: each with its own. Dotted: prediction of the kernel "
        "at t = 0. Dashed: (1 − ηe₀/2)^t with e₀ = λ_min(G∞) for f and λ_min(G*∞) for f*, of the "
        "kernel κ₁/d that these networks have. {driven}",
    ),
    "regimes": (
        "What drives the rate as α grows",
        "Infinite-width kernels of N clients of M points in d dimensions, S_i = I. Lines: "
        "median over {regimes} draws; bands: range. Dots: finite networks. λ_min(Λ) must stay "
        "above e₀/2: it does with the kernel that the network has, κ₁/d, and no longer does with "
        "Eq. (10) as printed, α²κ₁, where that line crosses it. "
        "Grey: where λ_min(V∞)/α² falls below λ_min(G∞), over the draws.",
    ),
    "widths": (
        "Effect of the width",
        "Worst case over f and f*, both step sizes, draws and steps. (a) Largest |log₁₀| of the "
        "measured squared residual by its linearised prediction, as long as both exceed 10⁻²⁰ "
        "of the start. (b) Smallest computed λ_min(Λ(t)) at nine steps of training by e₀/2; "
        "Theorem III.4 needs 1.",
    ),
    "drift": (
        "Drift of the kernels on {source}",
        "Spectral norms of what separates V, G and Λ of f and f* from infinite width at t = 0 "
        "(upper row, {starts} draws of points and networks) and of how far training moves them "
        "(lower row: the largest over the recorded steps of {drift_steps}, η = 1/λ_max(Λ(0)), "
        "{drift_draws} draws), by the norm of the limit; for f* that of G*∞ and Λ*∞. Lines: "
        "geometric mean over draws; bands: range. Numbers: slope over log m at α = {slope_alpha} "
        "with its 95 % interval over draws. Independent neurons give −1/2 at the start, where V "
        "and G do not depend on α.",
    ),
    "along": (
        "The kernels along training",
        "Distance of G(t) from its limit, and λ_min(Λ(t)) by e₀/2 as computed, at the recorded "
        "steps of training, for the narrowest and the widest networks. Lines: median over "
        "{drift_draws} draws; bands: range. Theorem III.4 needs 1 in the lower row.",
    ),
    "asked": (
        "The width asked for and the width one can have",
        "The width that Theorem III.4 asks for with its unknown constant set to 1 (marks: median, "
        "bars: range over {drift_draws} draws), the largest network whose drift was followed, and "
        "the largest f* that {memory} of memory train. The decay is seen far below what is asked.",
    ),
    "local": (
        "Local steps and sampled clients on {source}: outside the theorem",
        "Federated training of f and f*: each round every sampled client takes E full-batch steps "
        "on its own loss and the server averages what is shared with p_i, the client's part of "
        "the points. First draw, the largest α. Dashed: (1 − ηe₀/2)^t, which the theorem promises "
        "for E = 1 and everyone (panel a) alone. η is the largest step that every client's own "
        "loss admits, min over i of p_i/λ_max(Λ_ii(0)), the same for f and f*.",
    ),
    "rates": (
        "Decay by local steps: outside the theorem for E > 1 and sampled clients",
        "Mean decay of ‖f − y‖² in decades a round (upper row) and a local step (lower row), mean "
        "over {local_draws} draws, over {rounds} rounds or down to 10⁻¹² of the start. Dotted: the "
        "largest step that Theorem III.4 admits for E = 1, f and f* each with its own; it can be "
        "too long for a client alone.",
    ),
    "training": (
        "Training the federation",
        "FedAvg with aggregated and with client-specific BN (FedBN), {net}, {seeds} seeds. "
        "Loss and accuracy are measured after aggregation, in eval mode, over whole splits, "
        "each client with the BN that its policy gives it. Lines: mean over seeds; bands and "
        "bars: 95 % {interval} intervals over seeds; (c) paired by seed.",
    ),
}
