"""How much memory there is: what the machine, its container and the process's own limit leave."""

import os
from pathlib import Path

from theory._loose import Real
from theory._validate import positive

_UNKNOWN = 2 << 30  # where no system tells: what most machines have
_UNLIMITED = 1 << 60  # version 1 of cgroups writes a huge number for no limit
_USED = 0.9  # of what is left: the rest is for buffers, and for who else starts


def as_memory(memory: "Real | None") -> float:
    """Returns the bytes that may be used: as given, else nine tenths of what there is.

    Raises:
        TypeError, ValueError: no positive number.
    """
    return _USED * available_memory() if memory is None else positive(memory, "memory")


def available_memory(root: Path = Path("/")) -> int:
    """Bytes that this process can still allocate without swapping.

    The least of MemAvailable, of what every control group above the process leaves, and of its own
    limit of address space; half of the physical memory where a system has no such accounts.
    """
    found = [_machine(root), *_groups(root), _process(root)]
    known = [max(left, 0) for left in found if left is not None]
    return min(known) if known else _physical()


def _machine(root: Path) -> int | None:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and rest.split()[:1] and rest.split()[0].isdigit():
            return int(rest.split()[0]) << 10
    return None


def _groups(root: Path) -> list[int]:
    """What is left of each limit, cached files counted as free, for both versions of cgroups."""
    left = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        old = bool(controllers)
        base = root / "sys/fs/cgroup" / ("memory" if old else "")
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        limit, usage, cached = names if old else ("memory.max", "memory.current", "inactive_file")
        group = base / path.lstrip("/")
        # A container often sees its own group at the root, and its outer path as well.
        for folder in (group, *group.parents):
            most, used = _number(folder / limit), _number(folder / usage)
            if most is not None and used is not None and most < _UNLIMITED:
                left.append(most - used + _statistic(folder / "memory.stat", cached))
            if folder == base:
                break
    return left


def _process(root: Path) -> int | None:
    """What is left of the limit of address space, if one is set."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _read(root / "proc/self/statm").split()
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return limit - int(pages[0]) * resource.getpagesize()


def _physical() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _statistic(path: Path, name: str) -> int:
    for line in _read(path).splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def gib(size: float) -> str:
    """A number of bytes as text."""
    return f"{size / 2**30:.3g} GiB"
