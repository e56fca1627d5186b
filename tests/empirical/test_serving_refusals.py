"""What a `Serving` may be, what is recorded, refused and called diverged, and two harms by hand."""

import math
from dataclasses import asdict, replace

import pytest
from streams import state_of, trained
from torch import nn
from toy import Slope, bn_net, client, signs, unchecked

from empirical import VARIANTS, Client, DivergedError, Serving, Split, serve_external

SITE = client("outside", 3, test=33)
STATE = state_of(trained(bn_net()))
ADAPTED = {"variance": "within", "affine": "given", "first": "batch"}


@pytest.mark.parametrize(
    ("variant", "momentum", "batch_size", "options"),
    [
        ("server", None, None, {}),
        ("adapted", 0.9, 32, ADAPTED),
        ("batch", 0.0, 32, ADAPTED),
        ("source", 0.9, 32, {**ADAPTED, "first": "source"}),
        ("identity", 0.9, 32, {**ADAPTED, "affine": "identity"}),
        ("total", 0.9, 32, {**ADAPTED, "variance": "total"}),
    ],
)
def test_every_variant_has_its_options_and_records_them(
    variant: str, momentum: float | None, batch_size: int | None, options: dict
) -> None:
    serving = Serving(variant)
    expected = {"variant": variant, "momentum": momentum, "batch_size": batch_size}
    expected |= {"order": "shuffled", "last": "kept", "prediction": "after"}
    expected["batch_variance"] = "biased"
    assert asdict(serving) == expected
    served = serve_external(bn_net(), STATE, SITE, serving, 0)
    assert served.options == {**expected, **options}
    assert len(VARIANTS) == 6
    folded = "the last batch of one image is folded into the one before it: 33"
    assert served.notes == ((folded,) if options else ())


def test_a_whole_number_as_momentum_is_the_same_serving() -> None:
    serving = unchecked(Serving)("batch", 0)
    assert serving == Serving("batch") and repr(serving) == repr(Serving("batch"))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"variant": "adaptd"}, "unknown variant 'adaptd': did you mean 'adapted'"),
        ({"variant": None}, "unknown variant None"),
        ({"variant": "batch", "momentum": 0.9}, "'batch' has the momentum 0.0, got 0.9"),
        ({"variant": "server", "momentum": 0.9}, "'server' adapts nothing"),
        ({"variant": "server", "batch_size": 32}, "give it an order alone"),
        ({"variant": "server", "last": "joined"}, "give it an order alone"),
        ({"variant": "server", "prediction": "before"}, "give it an order alone"),
        ({"variant": "server", "batch_variance": "unbiased"}, "give it an order alone"),
        ({"variant": "server", "order": "random"}, "order is 'shuffled'"),
        ({"momentum": 1.5}, r"in \[0, 1\], got 1\.5"),
        ({"momentum": "0.9"}, "got '0.9'"),
        ({"batch_size": 0}, "whole number of at least 1, got 0"),
        ({"batch_size": 1.0}, "got 1.0"),
        ({"batch_size": 1}, "at least 2, .* use variant 'total', biased, for batches of one"),
        ({"variant": "source", "batch_size": 1}, "'source' with biased variance needs a batch_"),
        (
            {"variant": "total", "batch_size": 1, "batch_variance": "unbiased"},
            "'total' with unbiased variance needs a batch_size of at least 2",
        ),
        ({"order": "random"}, "order is"),
        ({"last": "dropped"}, "last is 'kept' or 'joined', not 'dropped'"),
        ({"prediction": "during"}, "prediction is 'after' or 'before', not 'during'"),
        ({"batch_variance": "mean"}, "batch_variance is"),
    ],
)
def test_what_is_no_way_to_serve_is_refused(how: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unchecked(Serving)(**how)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, "compact_cnn", "is no Module"),
        (1, None, r"is no FederationState: use load_checkpoint\(path\)"),
        (2, SITE.test, "is no Client"),
        (3, "adapted", r"is no Serving: use Serving\('adapted'\)"),
    ],
)
def test_other_kinds_are_refused(place: int, value: object, message: str) -> None:
    arguments = [bn_net(), STATE, SITE, Serving(), 0]
    arguments[place] = value
    with pytest.raises(TypeError, match=message):
        unchecked(serve_external)(*arguments)


@pytest.mark.parametrize("variant", ["server", "adapted"])
def test_who_and_what_does_not_fit_is_refused(variant: str) -> None:
    serving = Serving(variant)
    inside = Client("b", SITE.train, SITE.test)
    with pytest.raises(ValueError, match=r"'b' was trained with: .* state\.weights\(name\)"):
        serve_external(bn_net(), STATE, inside, serving, 0)
    with pytest.raises(ValueError, match=r"'7\.weight' of shape \(2, 5\) does not fit"):
        wider = nn.Sequential(*bn_net()[:-1], nn.Linear(5, 3).double())
        serve_external(wider, STATE, SITE, serving, 0)
    with pytest.raises(ValueError, match=r"no weights for '8\.bias': build the model that was"):
        more = nn.Sequential(*bn_net(), nn.Linear(2, 2).double())
        serve_external(more, STATE, SITE, serving, 0)
    large = client("large", 3, size=5)
    with pytest.raises(
        ValueError, match=r"cannot take (images|batch 0) of shape \((6, )?3, 5, 5\)"
    ):
        serve_external(bn_net(), STATE, large, serving, 0)
    three = Split(SITE.test.images, SITE.test.labels, 3)
    with pytest.raises(ValueError, match=r"answers \(2,\) to one image; .* 3 classes need \(3,\)"):
        serve_external(bn_net(), STATE, Client("three", three, three), serving, 0)


def test_a_client_of_one_image() -> None:
    one = client("one", 3, test=1)
    for variant in VARIANTS:
        if variant in ("server", "total"):
            assert serve_external(bn_net(), STATE, one, Serving(variant), 0).batches == 1
            continue
        with pytest.raises(ValueError, match=r"has one test image, .* or 'total', biased"):
            serve_external(bn_net(), STATE, one, Serving(variant), 0)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize(
    ("weight", "value", "message"),
    [
        ("7.weight", math.nan, "answers NaN"),
        ("7.bias", math.inf, "loss is not finite"),
        ("0.weight", math.inf, "answers NaN|statistics of batch-norm layer '1' are not"),
    ],
)
def test_what_diverged_is_called_so(variant: str, weight: str, value: float, message: str) -> None:
    net = trained(bn_net())
    net.get_parameter(weight).data.fill_(value)
    with pytest.raises(DivergedError, match=message):
        serve_external(bn_net(), state_of(net), SITE, Serving(variant), 0)


@pytest.mark.parametrize("value", [math.inf, math.nan])
@pytest.mark.parametrize("name", ["1.running_var", "1.running_mean", "5.running_var"])
def test_statistics_that_are_not_finite_serve_nobody_with_the_servers(name, value) -> None:
    net = trained(bn_net())
    net.get_buffer(name)[0] = value
    hidden = name.endswith("var") and value == math.inf  # its layer answers β
    message = f"'{name}' of the server's model is not finite" if hidden else "not finite"
    with pytest.raises(DivergedError, match=message):
        serve_external(bn_net(), state_of(net), SITE, Serving("server"), 0)
    assert serve_external(bn_net(), state_of(net), SITE, Serving("adapted"), 0).accuracy >= 0


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_a_class_that_is_never_answered_hides_no_infinite_weight(variant: str) -> None:
    images = SITE.test.images
    zeros = Split(images, SITE.test.labels * 0, 2)
    net = trained(bn_net())
    net.get_parameter("7.bias").data[1] = -math.inf
    with pytest.raises(DivergedError, match=r"'7\.bias' of the server's model is not finite"):
        site = Client("zeros", zeros, zeros)
        serve_external(bn_net(), state_of(net), site, Serving(variant), 0)


def test_a_federation_that_diverged_serves_nobody() -> None:
    with pytest.raises(DivergedError, match="diverged in round 4"):
        serve_external(bn_net(), replace(STATE, status="diverged"), SITE, Serving(), 0)


def pixel_net() -> nn.Module:
    """Batch norm of one pixel r, then the logits (0, r̂): class 1 is what lies above the mean."""
    net = nn.Sequential(nn.BatchNorm2d(3), Slope(4.0)).double()
    net[0].running_var.fill_(0.25)
    return net


def test_a_stream_sorted_by_class_takes_the_class_away() -> None:
    # Class 1 is +1, class 0 is −1. In a batch of one class every pixel is the mean: r̂ = 0, the
    # loss log 2, and the first class is answered. A batch that holds both keeps them apart.
    site = signs("outside", [1, -1] * 20, [1, 0] * 20)
    net = pixel_net()
    state = state_of(net)
    for order, loss, accuracy in (("shuffled", None, 1.0), ("sorted", math.log(2), 0.5)):
        served = serve_external(net, state, site, Serving("batch", None, 10, order), 0)
        assert served.accuracy == accuracy
        assert served.loss < 0.3 if loss is None else served.loss == pytest.approx(loss, rel=1e-9)
        server = serve_external(net, state, site, Serving("server", order=order), 0)
        assert server.accuracy == 1.0 and server.loss < 0.01
    # τ = 1 keeps the first batch, all −1, as the mean: class 1 lies above it.
    kept = serve_external(net, state, site, Serving("adapted", 1.0, 10, "sorted"), 0)
    assert kept.accuracy == 1.0


def test_a_drift_is_followed_by_the_batch_and_lost_by_the_server() -> None:
    # Black at the place t has the level 127.75 t: it passes the server's mean of −0.5, the level
    # 63.75, half-way, and is class 1 from there on: about half of the black images, a quarter of
    # all. The batch's own mean lies between black and white throughout.
    site = signs("outside", [1, -1] * 100, [1, 0] * 100)
    net = pixel_net()
    net[0].running_mean.fill_(-0.5)
    state = state_of(net)
    found = {
        variant: serve_external(net, state, site, Serving(variant, order="drifting"), 0).accuracy
        for variant in ("server", "batch")
    }
    assert found["batch"] == 1.0
    assert found["server"] == pytest.approx(0.75, abs=0.05)  # which half a black image is in
    assert serve_external(net, state, site, Serving("server"), 0).accuracy == 1.0
