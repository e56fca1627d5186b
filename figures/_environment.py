"""What a run was computed with: versions, machine, commit."""

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

_PACKAGES = (
    "unifed",
    "numpy",
    "scipy",
    "torch",
    "scikit-learn",
    "scikit-image",
    "mlxtend",
    "pillow",
    "polars",
    "matplotlib",
)


@functools.cache
def _facts() -> tuple[tuple[str, object], ...]:
    versions: dict[str, str] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    machine = {
        "system": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
    return (
        ("versions", versions),
        ("platform", machine),
        ("git", git_commit(Path(__file__).resolve().parent.parent)),
    )


def environment() -> dict[str, object]:
    """Versions of Python and the packages that set numbers, the platform, the commit if any."""
    return {name: dict(value) if isinstance(value, dict) else value for name, value in _facts()}


def git_commit(checkout: Path) -> dict[str, object] | None:
    """Commit and cleanliness of a checkout whose top is this folder; None anywhere else.

    An installed copy inside somebody's own repository must not be given that repository's commit.
    """
    lines = _git(checkout, "rev-parse", "--show-toplevel", "HEAD")
    if lines is None or len(lines) != 2 or Path(lines[0]).resolve() != checkout.resolve():
        return None
    changes = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    return {"commit": lines[1], "modified": None if changes is None else bool(changes)}


def _git(folder: Path, *arguments: str) -> list[str] | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.split("\n")[:-1]
