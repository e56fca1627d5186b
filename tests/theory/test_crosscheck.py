"""The arc-cosine kernel against neural-tangents, where that is installed."""

import subprocess
import sys

import numpy as np
import pytest

from theory import crosscheck

needs_it = pytest.mark.skipif(not crosscheck.installed(), reason='needs the extra "ntk"')


@needs_it
@pytest.mark.parametrize(("dimension", "alpha"), [(2, 1.0), (20, 3.0), (784, 0.5)])
def test_agrees_on_generic_points(dimension, alpha):
    x = np.random.default_rng(0).standard_normal((40, dimension))
    found = crosscheck.crosscheck(x, alpha)
    # Its angle errs by √u near parallel; generic points leave a few hundred u.
    assert found.largest_difference < 1e-13
    assert str(found).startswith("Eq. (10) agrees with neural-tangents")
    assert found.nearly_parallel == 0.0


@needs_it
@pytest.mark.parametrize(("dimension", "alpha"), [(1, 2.0), (2, 1.0), (20, 3.0), (784, 0.5)])
def test_agrees_on_the_kernel_of_order_zero(dimension, alpha):
    x = np.random.default_rng(0).standard_normal((40, dimension))
    found = crosscheck.crosscheck(x, alpha, order=0)
    # 0.1 rad from parallel its angle is wrong by some 10 u times the roundings of x·y.
    assert found.largest_difference < 1e-13
    # √u at the diagonal, from x·y of so many terms.
    assert found.nearly_parallel < 1e-7
    assert str(found).startswith("(x·y)P₀") and "nearly parallel" in str(found)


@needs_it
def test_sets_the_nearly_parallel_pairs_of_order_zero_apart():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1e-8], [-1.0, 1e-6], [0.0, 0.0]])
    apart = crosscheck.crosscheck(x, order=0)
    # Theirs loses the angles 1e-8 and 1e-6, not that of a right angle; a zero point agrees.
    assert apart.largest_difference < 1e-15 < 1e-10 < apart.nearly_parallel < 1e-6
    assert crosscheck.crosscheck(x).largest_difference < 1e-15


@needs_it
def test_would_see_another_kernel():
    x = np.random.default_rng(0).standard_normal((8, 5))
    theirs = crosscheck.neural_tangents_gram_matrix(x, alpha=2.0)
    ours = crosscheck.gram_matrix(x, alpha=1.0)
    assert np.abs(theirs / ours - 4.0).max() < 1e-12


@needs_it
def test_would_see_another_kernel_of_order_zero(monkeypatch):
    x = np.random.default_rng(0).standard_normal((8, 5))
    wrong = crosscheck.direction_gram_matrix(x, 1.01)
    monkeypatch.setattr(crosscheck, "direction_gram_matrix", lambda _: wrong)
    found = crosscheck.crosscheck(x, order=0)
    assert found.largest_difference > 1e-3 and found.nearly_parallel > 1e-3


@needs_it
def test_leaves_the_floating_point_width_of_jax_alone():
    import jax

    before = jax.config.jax_enable_x64
    crosscheck.crosscheck(np.eye(3))
    assert jax.config.jax_enable_x64 == before


def test_says_how_to_install(monkeypatch):
    monkeypatch.setattr(crosscheck, "installed", lambda: False)
    for order in (1, 0):
        with pytest.raises(ModuleNotFoundError, match="ntk"):
            crosscheck.crosscheck(np.eye(3), order=order)
    with pytest.raises(ModuleNotFoundError, match="ntk"):
        crosscheck.neural_tangents_slope_matrix(np.eye(3))


def test_refuses_bad_points_before_importing_anything():
    for order in (1, 0):
        with pytest.raises(ValueError, match=r"NaN|finite"):
            crosscheck.crosscheck([[np.nan, 1.0]], order=order)
    with pytest.raises(ValueError, match=r"order must be 1 .* or 0"):
        crosscheck.crosscheck(np.eye(2), order=2)


HEAVY = "{'jax', 'jaxlib', 'neural_tangents', 'tensorflow', 'tf2jax', 'torch'}"

SECTION = """
import importlib, pkgutil, sys, zlib
import numpy as np
import theory
for module in pkgutil.walk_packages(theory.__path__, "theory."):
    importlib.import_module(module.name)
from theory.studies import STUDIES, convergence_plan

def generators(*purpose):
    return np.random.default_rng(zlib.crc32(repr(purpose).encode()))

config = dict(seed=0, data="gaussian", clients=2, samples=3, dimension=4, draws=2, draw=0)
config |= dict(sizes=[(2, 3)], alphas=[1.0, 9.0], alpha=2.0, width=16, steps=3)
points = np.random.default_rng(0).standard_normal((9, 4)), np.repeat([0, 1, 2], 3)
for name in ("corollary", "spectrum", "regime", "dynamics"):
    data = points if name == "spectrum" else None
    assert list(STUDIES[name](config, data, generators, lambda _: None)), name
plan = [s for p in ("quick", "default", "paper") for s in convergence_plan(p, "digits")]
print(any(study.config["study"] == "witness" for study in plan))
bad = HEAVY & {name for name, module in sys.modules.items() if module is not None}
sys.exit(str(bad) if bad else 0)
""".replace("HEAVY", HEAVY)


def script(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_the_module_imports_nothing_heavy():
    code = f"import sys, theory.crosscheck\nbad = {HEAVY} & set(sys.modules)\n"
    found = script(code + "sys.exit(str(bad) if bad else 0)")
    assert found.returncode == 0, found.stderr


def test_the_studies_of_the_section_import_neither_jax_nor_tensorflow():
    found = script(SECTION)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == str(crosscheck.installed())


def test_without_neural_tangents_everything_else_works_and_the_plan_leaves_the_witness_out():
    # None in sys.modules: neither found nor importable, whatever is installed.
    found = script("import sys\nsys.modules['neural_tangents'] = None\n" + SECTION)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "False"
