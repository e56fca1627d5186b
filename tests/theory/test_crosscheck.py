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
    assert "neural-tangents" in str(found)


@needs_it
def test_would_see_another_kernel():
    x = np.random.default_rng(0).standard_normal((8, 5))
    theirs = crosscheck.neural_tangents_gram_matrix(x, alpha=2.0)
    ours = crosscheck.gram_matrix(x, alpha=1.0)
    assert np.abs(theirs / ours - 4.0).max() < 1e-12


@needs_it
def test_leaves_the_floating_point_width_of_jax_alone():
    import jax

    before = jax.config.jax_enable_x64
    crosscheck.crosscheck(np.eye(3))
    assert jax.config.jax_enable_x64 == before


def test_says_how_to_install(monkeypatch):
    monkeypatch.setattr(crosscheck, "installed", lambda: False)
    with pytest.raises(ModuleNotFoundError, match="ntk"):
        crosscheck.crosscheck(np.eye(3))


def test_refuses_bad_points_before_importing_anything():
    with pytest.raises(ValueError, match=r"NaN|finite"):
        crosscheck.crosscheck([[np.nan, 1.0]])


def test_importing_the_module_imports_nothing_heavy():
    code = (
        "import sys, theory.crosscheck\n"
        "bad = {'jax', 'neural_tangents', 'tensorflow', 'torch'} & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
