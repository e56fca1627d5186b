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
    "training": (
        "Training the federation",
        "FedAvg with aggregated and with client-specific BN (FedBN), {net}, {seeds} seeds. "
        "Loss and accuracy are measured after aggregation, in eval mode, over whole splits, "
        "each client with the BN that its policy gives it. Lines: mean over seeds; bands and "
        "bars: 95 % {interval} intervals over seeds; (c) paired by seed.",
    ),
}
