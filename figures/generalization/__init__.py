"""The section `generalization`: the bounds term by term, and what client-specific BN cuts."""

from figures.experiments.names import client_looks, client_titles
from figures.experiments.product import Content, Drawing, presenter
from figures.experiments.wide import WIDEST
from figures.generalization import captions
from figures.generalization.claims import judge
from figures.generalization.draw_gaussian import exact_terms, residual
from figures.generalization.draw_last import last_layer, last_marks
from figures.generalization.draw_layers import (
    batch_marks,
    by_batches,
    by_layer,
    layer_marks,
    shown_columns,
)
from figures.generalization.draw_scatter import scatter
from figures.generalization.draw_terms import bars, stacked_terms
from figures.generalization.layouts import tables, titles
from figures.generalization.names import title
from figures.generalization.summary import Summary, summarise

__all__ = ["Summary", "content", "present", "summarise"]

PROVEN = (
    "gaussian.bound",
    "gaussian.whitened-zero",
    "gaussian.per-unit-scale",
    "eq15.convex",
)
"""Ids (their beginnings) of the statements that are proven: a violation is a bug."""

LEAD = (
    "UniFed's bound for a client from outside adds up the seen clients' risk, half the divergence "
    "between their features and its own, an ideal joint error and capacities (16); client-specific "
    "BN is to remove the divergence (18). Here every term is measured on trained networks, and "
    "known exactly for Gaussian clients: which terms shrink, by how much, and under which "
    "condition (18) holds: one law of all whitened features, which per-unit BN does not give."
)


def content(summary: Summary) -> Content:
    """What the section says of the records."""
    gaussian = summary.gaussian
    whole = {**summary.whole, "points": summary.points, "gaussian_draws": gaussian.draws}
    whole |= {"gaussian_terms": gaussian.terms, "gaussian_risks": gaussian.risks}
    return Content(
        "Generalization",
        LEAD,
        list(judge(summary)),
        drawings(summary),
        tables(summary),
        whole=whole,
        notes=summary.diverged,
        proven=PROVEN,
    )


present = presenter(summarise, content)


def drawings(summary: Summary) -> dict[str, Drawing]:
    """The figures that the records allow."""
    found = _trained(summary)
    gaussian = summary.gaussian
    if gaussian.terms.height and gaussian.risks.height:
        caption = captions.gaussian_caption(gaussian, captions.GAUSSIAN)
        found["gaussian_terms"] = Drawing(
            "Gaussian clients: exact terms, true bounds", caption, lambda: exact_terms(gaussian)
        )
    if gaussian.divergence.height:
        caption = captions.gaussian_caption(gaussian, captions.RESIDUAL)
        found["residual"] = Drawing(
            "What per-unit BN leaves of the divergence", caption, lambda: residual(gaussian)
        )
    return found


def _trained(summary: Summary) -> dict[str, Drawing]:
    found: dict[str, Drawing] = {}
    names = client_titles(summary.clients)
    heads = captions.panel_titles(summary, names)
    layers, batches = layer_marks(summary), batch_marks(summary)
    rows = titles(summary)
    last = last_marks(summary, rows)
    pairs = last.filter(panel="pairs").height > 0
    if seen := shown_columns(summary, layers):
        found["layers"] = Drawing(
            "Divergence by layer",
            captions.layers_caption(summary, pairs),
            lambda: by_layer(layers, {c: heads[c] for c in seen}, summary.layers),
        )
    if pairs:
        found["last_layer"] = Drawing(
            "Divergence of the last layer",
            captions.last_caption(summary),
            lambda: last_layer(last, {c: t for c, t in rows.items() if c in set(last["row"])}),
        )
    terms = bars(summary)
    if terms.height:
        clients = {c: names[c] for c in summary.clients[:WIDEST]}
        found["terms"] = Drawing(
            f"The bound, term by term: {title(terms['kind'])}",
            captions.terms_caption(summary),
            lambda: stacked_terms(terms, clients),
        )
    moved = shown_columns(summary, batches)
    if moved and summary.after:
        found["batches"] = Drawing(
            "Divergence by test batches",
            captions.batches_caption(summary),
            lambda: by_batches(batches, {c: heads[c] for c in moved}),
        )
    if summary.rank is not None and summary.points.height > 1:
        looks, rank = client_looks(summary.clients[:35]), summary.rank
        found["scatter"] = Drawing(
            "Divergence taken and accuracy gained",
            captions.scatter_caption(summary),
            lambda: scatter(summary.points, rank, looks),
        )
    return found
