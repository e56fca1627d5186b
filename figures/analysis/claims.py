"""What the section claims: the advantage holds at every setting, and what momentum and γ, β do."""

from collections.abc import Iterator

from figures.analysis.layouts import value_text
from figures.analysis.summary import Summary
from figures.claims import Claim
from figures.experiments.measures import POLICIES
from figures.style import look

STEPS, EPOCHS, DATA, DOMAINS = (
    f"figures/{name}.pdf" for name in ("steps", "epochs", "data", "domains")
)
MOMENTUM, CHOICE = "figures/momentum.pdf", "figures/choice.pdf"
AHEAD = "Client-specific BN is ahead of aggregated BN with"
HERE = "here; FedBN, Fig. 4 (b), (c)"
STEP = "derived here"
OWN = "derived here; UniFed, Eqs. (3), (4)"


def judge(summary: Summary) -> Iterator[Claim]:
    """Judge every claim of the section that the records speak about."""
    for value, found in summary.steps.ahead.items():
        yield found.claim(f"steps.{value:g}", f"{AHEAD} lr = {value:g}", STEP, STEPS)
    for value, found in summary.epochs.ahead.items():
        words = f"{AHEAD} {value:g} local epoch{'s' * (value != 1)} a round"
        yield found.claim(f"epochs.{value:g}", words, "FedBN, Fig. 4 (a)", EPOCHS)
    for value, found in summary.data.ahead.items():
        words = f"{AHEAD} {value_text('data', value)} of each client's training images"
        yield found.claim(f"data.{100 * value:g}", words, "FedBN, Fig. 4 (b)", DATA)
    for value, found in summary.data.alone.items():
        words = f"FedBN is ahead of training alone with {value_text('data', value)} of each"
        words += " client's training images"
        yield found.claim(f"data.local.{100 * value:g}", words, "FedBN, Fig. 4 (b)", DATA)
    for value, found in summary.domains.ahead.items():
        words = f"{AHEAD} {value:g} client{'s' * (value != 1)} a domain"
        yield found.claim(f"domains.{value:g}", words, "FedBN, Fig. 4 (c)", DOMAINS)
    for value, found in summary.domains.alone.items():
        words = f"FedBN is ahead of training alone with {value:g} client{'s' * (value != 1)}"
        yield found.claim(f"domains.local.{value:g}", f"{words} a domain", HERE, DOMAINS)
    yield from _outside(summary)


def _outside(summary: Summary) -> Iterator[Claim]:
    for size, found in summary.grid.momentum.items():
        words = (
            f"The momentum τ = 0.9 serves clients from outside better than τ = 0 at n_t = {size}"
        )
        yield found.claim(f"momentum.{size}", words, "UniFed, Eq. (4)", MOMENTUM)
    for policy, found in summary.choice.inside.items():
        if policy in POLICIES:
            continue  # that is what the other sections compare
        words = f"All of BN on the clients is ahead of {look(policy).label}"
        name = policy.replace("_", "-")
        yield found.claim(f"inside.{name}", words, "FedBN, Section 3; UniFed, Section III", CHOICE)
    found = summary.choice.outside.get(POLICIES[1])
    if found is not None:
        words = "γ and β, the clients' mean, serve a client from outside better than γ = 1, β = 0"
        yield found.claim("outside.affine", words, OWN, CHOICE)
