"""Memory of large results: used again, given back, and refused as NumPy refuses it."""

import mmap
import resource
import subprocess
import sys

import numpy as np
import pytest

from tapegrad.arrays import memory_pool
from tapegrad.arrays.memory_pool import KEPT, large_empty, release_buffers

FLOAT64 = np.dtype(np.float64)
BEYOND = KEPT // 8 + 1000  # elements of an array larger than all that stays the process's own


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def faults_of_filling(array: np.ndarray) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    array.fill(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.parametrize("size", [10_000, 1_000_000, BEYOND])
def test_memory_of_a_dead_array_is_used_again(size: int) -> None:
    first = large_empty((size,), FLOAT64)
    place = address(first)
    del first
    assert address(large_empty((size,), FLOAT64)) == place


@pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="the system cannot take pages back later")
def test_pages_beyond_what_is_kept_are_there_without_a_fault() -> None:
    first = large_empty((BEYOND,), FLOAT64)
    fresh = faults_of_filling(first)
    del first
    assert faults_of_filling(large_empty((BEYOND,), FLOAT64)) < fresh / 10


@pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="the system cannot take pages back later")
def test_blocks_that_idle_longest_are_lent_to_the_system_first() -> None:
    release_buffers()
    used, others = 1 << 20, range(2 << 20, 40 << 20, 2 << 20)
    for count in others:
        large_empty((count // 8 + 1000,), FLOAT64)
        large_empty((used // 8,), FLOAT64)
    lent = {size for size, blocks in memory_pool._lent.items() if blocks}
    assert lent
    assert max(lent) < min(size for size, blocks in memory_pool._idle.items() if blocks and size != used)
    assert used not in lent
    release_buffers()


def test_a_block_that_was_lent_is_used_again() -> None:
    release_buffers()
    first = large_empty((1 << 17,), FLOAT64)
    place = address(first)
    del first
    others = [large_empty(((1 << 20) + 1000 * k,), FLOAT64) for k in range(20)]
    del others
    assert memory_pool._lent[1 << 20]
    assert address(large_empty((1 << 17,), FLOAT64)) == place
    release_buffers()


def test_a_new_size_takes_the_room_of_idle_blocks_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    release_buffers()
    monkeypatch.setattr(memory_pool, "_limit", 3 << 20)
    old = [large_empty((1 << 17,), FLOAT64) for _ in range(3)]
    del old
    new = large_empty((1 << 18,), FLOAT64)
    place = address(new)
    del new
    assert address(large_empty((1 << 18,), FLOAT64)) == place


def test_views_keep_the_memory_from_being_used_again() -> None:
    first = large_empty((BEYOND,), FLOAT64)
    first.fill(7.0)
    view = first[::1000]
    del first
    large_empty((BEYOND,), FLOAT64).fill(0.0)
    assert (view == 7.0).all()


def test_idle_memory_makes_room_where_the_system_refuses_more() -> None:
    program = """if True:
        import resource
        import numpy as np
        from tapegrad.arrays.memory_pool import large_empty
        size = 1 << 25
        held = [large_empty((size,), np.dtype(float)) for _ in range(2)]
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
        del held
        print(large_empty((size + size // 2,), np.dtype(float)).size)
        try:
            large_empty((8 * size,), np.dtype(float))
        except MemoryError:
            print("refused")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str((1 << 25) * 3 // 2), "refused"]


def test_no_block_is_given_out_twice_when_threads_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1 << 20
    blocks = [mmap.mmap(-1, size) for _ in range(3)]

    class OtherThreads(dict[int, list[mmap.mmap]]):
        """Where a list is taken out, one thread has just looked at it, and another one keeps a block before it is back."""

        seen: list[mmap.mmap] | None = None

        def pop(self, key: int, *default: None) -> list[mmap.mmap] | None:
            found = super().pop(key, *default)
            if self.seen is None:
                self.seen = found
                memory_pool._keep(blocks[2], size)
            return found

    release_buffers()
    monkeypatch.setattr(memory_pool, "_idle", OtherThreads({size: [blocks[0]]}))
    monkeypatch.setattr(memory_pool, "_idle_bytes", size)
    monkeypatch.setattr(memory_pool, "_own_bytes", size)
    memory_pool._keep(blocks[1], size)

    seen = memory_pool._idle.seen  # type: ignore[attr-defined]
    given = [seen.pop()] if seen else []
    while (memory := memory_pool._waiting(size)) is not None:
        given.append(memory)
    assert len(given) == len({id(memory) for memory in given}) == 3
    release_buffers()
