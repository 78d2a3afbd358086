"""The same program gives the same bits, whatever else happens in the process, and in every process."""

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from repeatable_program import LARGE, bits

import tapegrad as tg
from tapegrad.arrays.memory_pool import release_buffers

PROGRAM = str(Path(__file__).parents[1] / "repeatable_program.py")


@pytest.fixture(scope="module")
def expected() -> bytes:
    return bits()


def test_program_run_again_gives_the_same_bits(expected: bytes) -> None:
    assert bits() == expected


def test_compaction_at_any_moment_leaves_the_bits(expected: bytes) -> None:
    assert bits(tg.tape.default_tape().collect) == expected


def test_garbage_on_the_tape_leaves_the_bits(expected: bytes) -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    kept: list[tg.Tensor] = []

    def litter() -> None:
        for _ in range(500):
            kept[3:] = [x * 2.0 + x]
        kept.insert(0, x * 3.0)

    assert bits(litter) == expected


def test_cold_buffers_leave_the_bits(expected: bytes) -> None:
    assert bits(release_buffers) == expected


def test_buffers_full_of_other_numbers_leave_the_bits(expected: bytes) -> None:
    def dirty() -> None:
        for values in (np.nan, 1e300):
            t = tg.full((LARGE,), values)
            held = [t * 1.0 for _ in range(8)]
            del held

    dirty()
    assert bits(dirty) == expected


def test_threads_that_record_beside_it_leave_the_bits(expected: bytes) -> None:
    stop = threading.Event()

    def work(number: int) -> None:
        x = tg.tensor(np.full(50 + number, 0.5), requires_grad=True)
        while not stop.is_set():
            (tg.sin(x * x).sum() * x.logsumexp(0)).backward()
            x.grad = None

    before = sys.getswitchinterval()
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(3)]
    sys.setswitchinterval(1e-4)
    try:
        for thread in threads:
            thread.start()
        found = [bits() for _ in range(3)]
    finally:
        stop.set()
        sys.setswitchinterval(before)
        for thread in threads:
            thread.join(60.0)
    assert found == [expected] * 3


def test_processes_give_the_same_bits_whatever_their_hash_seed_and_number_of_threads(expected: bytes) -> None:
    settings = [
        {"PYTHONHASHSEED": seed, "NUMBA_NUM_THREADS": count, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
        for seed, count in (("0", "1"), ("12345", "2"))
    ]
    package = str(Path(tg.__file__).parents[1])
    started = [
        subprocess.Popen([sys.executable, PROGRAM], env={**os.environ, "PYTHONPATH": package, **setting}, stdout=subprocess.PIPE)
        for setting in settings
    ]
    printed = [process.communicate()[0].decode().strip() for process in started]
    assert printed == [hashlib.sha256(expected).hexdigest()] * 2
