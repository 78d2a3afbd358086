"""Elements along one dimension as weighted sums of a few others, and the transposed map, in the order of the taps."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_dimensions, f64, i64


@inline
def first_term(out, values, weight, count):
    """A first term."""
    for j in range(count):
        out[j] = values[j] * weight


@inline
def further_term(out, values, weight, count):
    """A further term."""
    for j in range(count):
        out[j] += values[j] * weight


@inline
def single_elements(z, x, places, weights, count, taps, transposed):
    """The map along a last dimension: its elements stand side by side, and a loop over one of them would cost more than the sum."""
    for n in range(count):
        at, total = n * taps, 0.0
        if transposed:
            for k in range(taps):
                z[places[at + k]] += x[n] * weights[at + k]
        else:
            for k in range(taps):
                term = x[places[at + k]] * weights[at + k]
                total = term if k == 0 else total + term
            z[n] = total


@entry("int64(int64,int64,int64,int64,int64)", nogil=True)
def apply_taps(pz, px, pplaces, pweights, transposed):
    """Contiguous float64 arrays of shapes (outer, n, inner) and (outer, extent, inner); places and weights are of shape (n, k).

    The transposed map adds to an array of zeros.
    """
    outer, inner = array_dimensions(px)[0], array_dimensions(px)[2]
    count, taps = array_dimensions(pplaces)[0], array_dimensions(pplaces)[1]
    places, weights = i64(array_data(pplaces), count * taps), f64(array_data(pweights), count * taps)
    own, other = 8 * inner * array_dimensions(pz)[1], 8 * inner * array_dimensions(px)[1]
    for o in range(outer):
        z, x = array_data(pz) + o * own, array_data(px) + o * other
        if inner == 1:
            single_elements(f64(z, own // 8), f64(x, other // 8), places, weights, count, taps, transposed)
            continue
        for n in range(count):
            for k in range(taps):
                tap = n * taps + k
                place, weight = 8 * inner * places[tap], weights[tap]
                if transposed:
                    further_term(f64(z + place, inner), f64(x + 8 * inner * n, inner), weight, inner)
                elif k == 0:
                    first_term(f64(z + 8 * inner * n, inner), f64(x + place, inner), weight, inner)
                else:
                    further_term(f64(z + 8 * inner * n, inner), f64(x + place, inner), weight, inner)
    return 0
