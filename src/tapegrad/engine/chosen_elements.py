"""Elements of one array or of another, as a third one says, without a branch at each element."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data, array_size, f64, u8


@entry("int64(int64,int64,int64,int64)")
def choose_elements(pz, pchosen, px, py):
    """`x` where the bytes of `chosen` are not 0, else `y`; each is float64, of the result's size or one number."""
    n = array_size(pz)
    out, chosen, xs, ys = f64(array_data(pz), n), u8(array_data(pchosen), n), f64(array_data(px), n), f64(array_data(py), n)
    if array_size(px) == 1:
        x = xs[0]
        if array_size(py) == 1:
            y = ys[0]
            for j in range(n):
                out[j] = x if chosen[j] != 0 else y
        else:
            for j in range(n):
                y = ys[j]
                out[j] = x if chosen[j] != 0 else y
    elif array_size(py) == 1:
        y = ys[0]
        for j in range(n):
            x = xs[j]
            out[j] = x if chosen[j] != 0 else y
    else:
        for j in range(n):
            x, y = xs[j], ys[j]
            out[j] = x if chosen[j] != 0 else y
    return 0
