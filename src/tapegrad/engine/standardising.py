"""Groups of elements brought to mean zero and variance one, times a weight plus a bias, and the derivatives of that.

Arrays are of shape (outer, groups, elements), and a group's mean is over the first and the last of these dimensions. Weights are of
shape (periods, each): group ``g`` has those of row ``g % periods``, each for `run` elements one after the other. A geometry is
these numbers as words: outer, groups, elements, periods, each, run. Sums are in float64, row by row, in four interleaved parts.
Where a group has one element in a row (`columns`), loops go over the groups.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64, item_bytes


@inline
def run_sum(x, count):
    """Sum of neighbouring elements."""
    a = b = c = d = 0.0
    for j in range(count // 4):
        a += x[4 * j]
        b += x[4 * j + 1]
        c += x[4 * j + 2]
        d += x[4 * j + 3]
    for j in range(count - count % 4, count):
        a += x[j]
    return (a + b) + (c + d)


@inline
def run_squares(x, count, mean):
    """Sum of squared distances from a number."""
    a = b = c = d = 0.0
    for j in range(count // 4):
        p, q, r, s = x[4 * j] - mean, x[4 * j + 1] - mean, x[4 * j + 2] - mean, x[4 * j + 3] - mean
        a += p * p
        b += q * q
        c += r * r
        d += s * s
    for j in range(count - count % 4, count):
        p = x[j] - mean
        a += p * p
    return (a + b) + (c + d)


@inline
def run_products(g, x, count, mean):
    """Sum of products with distances from a number."""
    a = b = c = d = 0.0
    for j in range(count // 4):
        a += g[4 * j] * (x[4 * j] - mean)
        b += g[4 * j + 1] * (x[4 * j + 1] - mean)
        c += g[4 * j + 2] * (x[4 * j + 2] - mean)
        d += g[4 * j + 3] * (x[4 * j + 3] - mean)
    for j in range(count - count % 4, count):
        a += g[j] * (x[j] - mean)
    return (a + b) + (c + d)


@inline
def row_sum(number, x, count):
    """`run_sum` at an address, in blocks: of long rows the errors stay small."""
    total, at = 0.0, 0
    while at < count:
        n = min(count - at, 512)
        total += run_sum(f64(x + 8 * at, n), n) if number == FLOAT64 else run_sum(f32(x + 4 * at, n), n)
        at += n
    return total


@inline
def row_squares(number, x, count, mean):
    """`run_squares` in the same way."""
    total, at = 0.0, 0
    while at < count:
        n = min(count - at, 512)
        total += run_squares(f64(x + 8 * at, n), n, mean) if number == FLOAT64 else run_squares(f32(x + 4 * at, n), n, mean)
        at += n
    return total


@inline
def row_products(number, g, x, count, mean):
    """`run_products` in the same way."""
    total, at = 0.0, 0
    while at < count:
        n = min(count - at, 512)
        if number == FLOAT64:
            total += run_products(f64(g + 8 * at, n), f64(x + 8 * at, n), n, mean)
        else:
            total += run_products(f32(g + 4 * at, n), f32(x + 4 * at, n), n, mean)
        at += n
    return total


@inline
def add_columns_of(sums, x, count):
    """Add an element to the sum of each group."""
    for j in range(count):
        sums[j] += x[j]


@inline
def add_squares_of(sums, x, means, count):
    """Add the squared distance from its mean."""
    for j in range(count):
        p = x[j] - means[j]
        sums[j] += p * p


@entry("int64(int64,int64,int64,int64)")
def moments_of_groups(pmeans, pvariances, px, pgeometry):
    """Mean and uncorrected variance of each group, in float64, of float64 or float32."""
    words, number, at = i64(array_data(pgeometry), array_size(pgeometry)), array_type_number(px), array_data(px)
    outer, groups, elements = words[0], words[1], words[2]
    means, variances = f64(array_data(pmeans), groups), f64(array_data(pvariances), groups)
    count, step = float(outer * elements), elements * item_bytes(number)
    for g in range(groups):
        means[g], variances[g] = 0.0, 0.0
    for o in range(outer):
        row = at + o * groups * step
        if elements == 1 and number == FLOAT64:
            add_columns_of(means, f64(row, groups), groups)
        elif elements == 1:
            add_columns_of(means, f32(row, groups), groups)
        else:
            for g in range(groups):
                means[g] += row_sum(number, row + g * step, elements)
    for g in range(groups):
        means[g] /= count
    for o in range(outer):
        row = at + o * groups * step
        if elements == 1 and number == FLOAT64:
            add_squares_of(variances, f64(row, groups), means, groups)
        elif elements == 1:
            add_squares_of(variances, f32(row, groups), means, groups)
        else:
            for g in range(groups):
                variances[g] += row_squares(number, row + g * step, elements, means[g])
    for g in range(groups):
        variances[g] /= count
    return 0


@inline
def scale_run(z, x, count, mean, factor, p, q):
    """``(x - mean) * factor * p + q`` with one weight and one bias."""
    for j in range(count):
        z[j] = (x[j] - mean) * factor * p + q


@inline
def scale_row(z, x, w, b, count, mean, factor, has_w, has_b):
    """The same with a weight and a bias for each element."""
    for j in range(count):
        z[j] = (x[j] - mean) * factor
    if has_w:
        for j in range(count):
            z[j] *= w[j]
    if has_b:
        for j in range(count):
            z[j] += b[j]


@inline
def scale_columns(z, x, w, b, count, means, factors, has_w, has_b):
    """The same with a mean and a factor for each element."""
    for j in range(count):
        z[j] = (x[j] - means[j]) * factors[j]
    if has_w:
        for j in range(count):
            z[j] *= w[j]
    if has_b:
        for j in range(count):
            z[j] += b[j]


@inline
def number_at(number, address):
    """A float64 or float32 as float64."""
    return f64(address, 1)[0] if number == FLOAT64 else float(f32(address, 1)[0])


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def scale_groups(pz, px, pw, pb, pmeans, pfactors, pgeometry):
    """The affine map of each group with a mean and a factor; a weight or bias that is 0 is left out."""
    words, number = i64(array_data(pgeometry), array_size(pgeometry)), array_type_number(px)
    outer, groups, elements, periods, each, run = words[0], words[1], words[2], words[3], words[4], words[5]
    means, factors = f64(array_data(pmeans), groups), f64(array_data(pfactors), groups)
    has_w, has_b, wide, x, z = pw != 0, pb != 0, item_bytes(number), array_data(px), array_data(pz)
    weights, biases = array_data(pw if has_w else px), array_data(pb if has_b else px)
    if elements == 1 and periods == groups:
        n = groups
        for _ in range(outer):
            if number == FLOAT64:
                scale_columns(f64(z, n), f64(x, n), f64(weights, n), f64(biases, n), n, means, factors, has_w, has_b)
            else:
                scale_columns(f32(z, n), f32(x, n), f32(weights, n), f32(biases, n), n, means, factors, has_w, has_b)
            x += n * wide
            z += n * wide
        return 0
    if not has_w and not has_b:
        each, run = 1, elements
    for _ in range(outer):
        for g in range(groups):
            mean, factor, first = means[g], factors[g], g % periods * each
            if run == 1:
                w, b = weights + first * wide, biases + first * wide
                if number == FLOAT64:
                    scale_row(f64(z, each), f64(x, each), f64(w, each), f64(b, each), each, mean, factor, has_w, has_b)
                else:
                    scale_row(f32(z, each), f32(x, each), f32(w, each), f32(b, each), each, mean, factor, has_w, has_b)
                x += each * wide
                z += each * wide
                continue
            for e in range(first, first + each):
                p = number_at(number, weights + e * wide) if has_w else 1.0
                q = number_at(number, biases + e * wide) if has_b else -0.0  # adds nothing, also to a zero
                if number == FLOAT64:
                    scale_run(f64(z, run), f64(x, run), run, mean, factor, p, q)
                else:
                    scale_run(f32(z, run), f32(x, run), run, mean, factor, p, q)
                x += run * wide
                z += run * wide
    return 0


@inline
def weigh_row(out, g, w, count):
    """``g * w``."""
    for j in range(count):
        out[j] = g[j] * w[j]


@inline
def project_run(out, h, x, count, mean, factor, p, plain, weighted):
    """``factor * (h * p - plain - (x - mean) * weighted)``."""
    for j in range(count):
        out[j] = factor * (h[j] * p - plain - (x[j] - mean) * weighted)


@inline
def add_products_of(plain, weighted, h, x, means, count):
    """Add an element, and its product with the distance from the mean, to the sums of each group."""
    for j in range(count):
        plain[j] += h[j]
        weighted[j] += h[j] * (x[j] - means[j])


@inline
def project_columns(out, h, x, count, means, factors, plain, weighted):
    """`project_run` with the numbers of each group."""
    for j in range(count):
        out[j] = factors[j] * (h[j] - plain[j] - (x[j] - means[j]) * weighted[j])


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)")
def project_groups(pout, pg, px, pw, pmeans, pfactors, psums, pgeometry):
    """The cotangent of what was standardised: ``factor * (h - mean(h) - u * mean(u * h))`` with ``h = g * w``, elements ``u``.

    `sums` is room for two numbers a group. A weight that is 0 is left out.
    """
    words, number = i64(array_data(pgeometry), array_size(pgeometry)), array_type_number(px)
    outer, groups, elements, periods, each, run = words[0], words[1], words[2], words[3], words[4], words[5]
    means, factors = f64(array_data(pmeans), groups), f64(array_data(pfactors), groups)
    plain, weighted = f64(array_data(psums), groups), f64(array_data(psums) + 8 * groups, groups)
    has_w, wide, count = pw != 0, item_bytes(number), float(outer * elements)
    out, x, h = array_data(pout), array_data(px), array_data(pg)
    weights = array_data(pw if has_w else px)
    if not has_w:
        each, run = 1, elements
    elif run == 1:  # weighted first, and then as without a weight
        n = each * periods
        for k in range(outer * groups // periods):
            to, at = out + k * n * wide, h + k * n * wide
            if number == FLOAT64:
                weigh_row(f64(to, n), f64(at, n), f64(weights, n), n)
            else:
                weigh_row(f32(to, n), f32(at, n), f32(weights, n), n)
        h, has_w, each, run = out, False, 1, elements
    for k in range(groups):
        plain[k], weighted[k] = 0.0, 0.0
    columns, at = elements == 1, 0
    for _ in range(outer):
        if columns:
            if number == FLOAT64:
                add_products_of(plain, weighted, f64(h + at, groups), f64(x + at, groups), means, groups)
            else:
                add_products_of(plain, weighted, f32(h + at, groups), f32(x + at, groups), means, groups)
            at += groups * wide
            continue
        for k in range(groups):
            first = k % periods * each
            for e in range(first, first + each):
                p = number_at(number, weights + e * wide) if has_w else 1.0
                plain[k] += p * row_sum(number, h + at, run)
                weighted[k] += p * row_products(number, h + at, x + at, run, means[k])
                at += run * wide
    for k in range(groups):
        plain[k] /= count
        weighted[k] *= factors[k] * factors[k] / count
    at = 0
    for _ in range(outer):
        if columns:
            if number == FLOAT64:
                s, t, u = f64(out + at, groups), f64(h + at, groups), f64(x + at, groups)
                project_columns(s, t, u, groups, means, factors, plain, weighted)
            else:
                v, y, z = f32(out + at, groups), f32(h + at, groups), f32(x + at, groups)
                project_columns(v, y, z, groups, means, factors, plain, weighted)
            at += groups * wide
            continue
        for k in range(groups):
            first = k % periods * each
            for e in range(first, first + each):
                p = number_at(number, weights + e * wide) if has_w else 1.0
                if number == FLOAT64:
                    s, t, u = f64(out + at, run), f64(h + at, run), f64(x + at, run)
                    project_run(s, t, u, run, means[k], factors[k], p, plain[k], weighted[k])
                else:
                    v, y, z = f32(out + at, run), f32(h + at, run), f32(x + at, run)
                    project_run(v, y, z, run, means[k], factors[k], p, plain[k], weighted[k])
                at += run * wide
    return 0


@inline
def add_slopes(slopes, g, x, count, mean, factor):
    """Add ``g * u`` element by element."""
    for j in range(count):
        slopes[j] += g[j] * ((x[j] - mean) * factor)


@inline
def add_slopes_of(slopes, g, x, count, means, factors):
    """The same with the numbers of each group."""
    for j in range(count):
        slopes[j] += g[j] * ((x[j] - means[j]) * factors[j])


@entry("int64(int64,int64,int64,int64,int64,int64)")
def slopes_of_weights(pslopes, pg, px, pmeans, pfactors, pgeometry):
    """The cotangents of the weights, in float64."""
    words, number = i64(array_data(pgeometry), array_size(pgeometry)), array_type_number(px)
    outer, groups, periods, each, run = words[0], words[1], words[3], words[4], words[5]
    means, factors = f64(array_data(pmeans), groups), f64(array_data(pfactors), groups)
    slopes, wide, x, h = f64(array_data(pslopes), periods * each), item_bytes(number), array_data(px), array_data(pg)
    for e in range(periods * each):
        slopes[e] = 0.0
    for _ in range(outer):
        if words[2] == 1 and periods == groups:
            if number == FLOAT64:
                add_slopes_of(slopes, f64(h, groups), f64(x, groups), groups, means, factors)
            else:
                add_slopes_of(slopes, f32(h, groups), f32(x, groups), groups, means, factors)
            x += groups * wide
            h += groups * wide
            continue
        for k in range(groups):
            first = k % periods * each
            if run == 1:
                part = f64(array_data(pslopes) + 8 * first, each)
                if number == FLOAT64:
                    add_slopes(part, f64(h, each), f64(x, each), each, means[k], factors[k])
                else:
                    add_slopes(part, f32(h, each), f32(x, each), each, means[k], factors[k])
                x += each * wide
                h += each * wide
                continue
            for e in range(first, first + each):
                slopes[e] += row_products(number, h, x, run, means[k]) * factors[k]
                x += run * wide
                h += run * wide
    return 0
