"""Machine code of loops of hundreds of operations on arrays: what it keeps on the stack is bounded."""

from __future__ import annotations

import subprocess
import sys

from many_cases import each

SCRIPT = """
import threading, numpy as np, tapegrad as tg
count, size, dtype = {count}, {size}, "{dtype}"

def function(x):
    for _ in range(count):
        x = {step}
    return (x * x).sum()

program, x = tg.program(function), np.linspace(0.1, 0.9, size).astype(dtype)
run = tg.value_and_grad(program)
expected = run(x)[1]
program.compile()
found = []
threading.stack_size(1 << 21)
for _ in range(2):
    thread = threading.Thread(target=lambda: found.append(run(x)[1]))
    thread.start()
    thread.join()
assert program.traces[0]["machine code"].startswith("machine code"), program.explain()
assert all(np.allclose(one, expected, rtol=1e-4 if dtype == "float32" else 1e-11) for one in found)
print("done")
"""
STEPS = {"functions": "np.tanh(x) + np.exp(-x) * 0.1", "comparisons": "np.maximum(x * 0.99, np.minimum(x, 0.5))"}


@each("step", STEPS)
@each(("count", "size", "dtype"), [(400, 600, "float64"), (150, 30, "float32")])
def test_stacks_of_threads_are_enough(step: str, count: int, size: int, dtype: str) -> None:
    script = SCRIPT.format(count=count, size=size, dtype=dtype, step=STEPS[step])
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")
