"""The float64 number next to each element, which is the next integer if its bytes are read as one."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, f64, i64

BLOCK_OF_NUMBERS = 512


@inline
def next_of_block(out, x, y, bits, towards, count):
    """One block, without branches."""
    for j in range(count):
        a, b, word, other = x[j], y[j], bits[j], towards[j]
        moved = word + 1 if (b > a) == (a > 0.0) else word - 1
        moved = (other & -9223372036854775808) | 1 if a == 0.0 else moved
        moved = other if (a == b) | (b != b) else moved
        out[j] = word if a != a else moved


@entry("int64(int64,int64,int64)", nogil=True)
def next_numbers(pz, px, py):
    """``numpy.nextafter`` of contiguous float64 arrays, of which one may be a block of one number."""
    count = array_size(pz)
    x_step, y_step = 8 if array_size(px) == count else 0, 8 if array_size(py) == count else 0
    for start in range(0, count, BLOCK_OF_NUMBERS):
        part = min(count - start, BLOCK_OF_NUMBERS)
        x, y, z = array_data(px) + start * x_step, array_data(py) + start * y_step, array_data(pz) + 8 * start
        next_of_block(i64(z, part), f64(x, part), f64(y, part), i64(x, part), i64(y, part), part)
    return 0
