"""Second partials weighted with adjoints: what the second derivative of one output adds, whatever the direction."""

from tapegrad.compilation.jit import entry
from tapegrad.compilation.memory_types import address_of
from tapegrad.engine.linear_layout import *
from tapegrad.engine.memory import f64
from tapegrad.rules.special import mul0


@entry("int64(Linear,Doubles)")
def weigh(linear, bars):
    """Multiply the adjoint of each row into its second partials; zero."""
    entries, curves = linear.entry, linear.curves
    for number in range(linear.entries):
        entry, curve = entries[number], curves[number]
        kind = entry.kind
        if kind == CURVED_PLAIN:
            g = bars[entry.place]
            curve.xx, curve.xy, curve.yy = mul0(g, curve.xx), mul0(g, curve.xy), mul0(g, curve.yy)
        elif kind == CURVED_MAP:
            program = linear.program[entry.program]
            if program.bar >= 0:  # else another entry shares the factors
                size = program.size
                weights = f64(address_of(linear.factors, program.factor), size)
                adjoints = f64(address_of(bars, program.bar), size)
                for e in range(size):
                    weights[e] = mul0(adjoints[e], weights[e])
    return 0
