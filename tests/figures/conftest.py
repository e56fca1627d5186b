"""Lets the tests here import the helper beside them, and presents a whole section once."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """The folder and the product of a section that has every part."""
    from synthetic import OPTIONS, everything

    from figures.convergence import present

    folder = tmp_path_factory.mktemp("section")
    return folder, present(*everything().both, folder, OPTIONS)


@pytest.fixture
def coarse(monkeypatch):
    """Draws figures in few dots, to be fast; everything else of `present` stays."""
    from synthetic_experiments import coarsely

    from figures.experiments.product import style

    monkeypatch.setattr(style, "save", coarsely)
