import numpy as np
import pytest

from theory._memory import as_memory, available_memory, gib


def machine(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\nSwapFree: 7 kB\n"}
V2 = {
    "proc/self/cgroup": "0::/work/job\n",
    "sys/fs/cgroup/work/memory.max": "5000000\n",
    "sys/fs/cgroup/work/memory.current": "3000000\n",
    "sys/fs/cgroup/work/memory.stat": "anon 7\ninactive_file 500000\n",
    "sys/fs/cgroup/work/job/memory.max": "max\n",
    "sys/fs/cgroup/work/job/memory.current": "2000000\n",
}
V1 = {
    "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/123\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "4000000\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000000\n",
    "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 0\n",
}


def test_the_machine_tells_what_is_available(tmp_path):
    assert available_memory(machine(tmp_path, MEMINFO)) == 8000 << 10


def test_a_limit_of_an_outer_control_group_counts_without_cached_files(tmp_path):
    assert available_memory(machine(tmp_path, MEMINFO | V2)) == 2_500_000


def test_a_limit_of_the_first_version_counts_where_a_container_sees_only_its_root(tmp_path):
    assert available_memory(machine(tmp_path, MEMINFO | V1)) == 3_000_000
    unlimited = {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}
    assert available_memory(machine(tmp_path, MEMINFO | V1 | unlimited)) == 8000 << 10


def test_an_exhausted_group_leaves_nothing(tmp_path):
    full = {"sys/fs/cgroup/work/memory.current": "9000000\n"}
    assert available_memory(machine(tmp_path, MEMINFO | V2 | full)) == 0


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/meminfo": "nothing known", "proc/self/cgroup": "garbage"},
        {"proc/meminfo": "MemAvailable:\n", "proc/self/cgroup": "0::/../..\n"},
    ],
)
def test_without_such_accounts_half_of_the_physical_memory_is_taken(tmp_path, files):
    assert available_memory(machine(tmp_path, files)) > 1 << 28


def test_a_limit_of_address_space_counts(tmp_path):
    resource = pytest.importorskip("resource")
    page, before = resource.getpagesize(), resource.getrlimit(resource.RLIMIT_AS)
    root = machine(tmp_path, MEMINFO | {"proc/self/statm": "1000 5 5 5 0 5 0\n"})
    try:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 40, before[1]))
        assert available_memory(root) == 8000 << 10
        limited = machine(root, {"proc/self/statm": f"{(1 << 40) // page - 3} 5\n"})
        assert available_memory(limited) == 3 * page
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_given_memory_is_taken_as_given():
    assert as_memory(5) == 5.0 and as_memory(None) <= available_memory() * 1.2
    for bad in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="memory must be positive and finite"):
            as_memory(bad)
    with pytest.raises(TypeError, match="memory must be one real number"):
        as_memory("8 GB")
    assert gib(3.0 * 2**30) == "3 GiB"
