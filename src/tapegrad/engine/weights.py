"""Second partials weighted with adjoints: what the second derivative of one output adds, whatever the direction."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.linear_layout import *
from tapegrad.engine.memory import f64, get, load_f64, load_i32, load_i64, store_f64
from tapegrad.rules.special import mul0


@entry("int64(int64,int64)")
def weigh(linear, bars):
    """Multiply the adjoint of each row into its second partials; zero."""
    at, curve = get(linear, ENTRY), get(linear, CURVES)
    for _ in range(get(linear, ENTRIES)):
        kind = load_i32(at)
        if kind == CURVED_PLAIN:
            g = load_f64(bars + 8 * load_i32(at + 4))
            for k in range(3):
                store_f64(curve + 8 * k, mul0(g, load_f64(curve + 8 * k)))
        elif kind == CURVED_MAP:
            program = get(linear, PROGRAM) + 8 * load_i64(at + 8)
            if get(program, MAP_BAR) >= 0:  # else another entry shares the factors
                size = get(program, MAP_SIZE)
                weights = f64(get(linear, FACTORS) + 8 * get(program, MAP_FACTOR), size)
                g = f64(bars + 8 * get(program, MAP_BAR), size)
                for e in range(size):
                    weights[e] = mul0(g[e], weights[e])
        at += ENTRY_BYTES
        curve += CURVE_BYTES
    return 0
