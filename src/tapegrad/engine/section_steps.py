"""Derivatives by sections: the steps of one, for eight of the same structure at once."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.fronts import MASK
from tapegrad.engine.section_layout import *
from tapegrad.engine.sections import Sections

EXACT, QUICK = True, False


def _products(is_exact):
    """``to = base + factor * source`` of eight lanes; where it is exact, a product is zero where either factor is."""

    @intrinsic
    def add_products(context, to, base, factor, source):
        def generate(context, builder, signature, arguments):
            kind = ir.VectorType(ir.DoubleType(), SECTION_LANES)
            pointers = [builder.inttoptr(address, kind.as_pointer()) for address in arguments]
            values = [builder.load(pointer) for pointer in pointers[1:]]
            for value in values:
                value.align = 8
            base, factor, source = values
            product = builder.fmul(factor, source)
            if is_exact:
                zero = ir.Constant(kind, [0.0] * SECTION_LANES)
                either = builder.or_(builder.fcmp_ordered("==", factor, zero), builder.fcmp_ordered("==", source, zero))
                product = builder.select(either, zero, product)
            builder.store(builder.fadd(base, product), pointers[0]).align = 8
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), generate

    return add_products


add_products, add_exact_products = _products(QUICK), _products(EXACT)


@intrinsic
def eight_by_eight(context, to, sources, offset):
    """Eight numbers of each of eight lanes to eight vectors; the lanes' addresses are `sources`, each plus `offset`."""

    def generate(context, builder, signature, arguments):
        word, small, double = ir.IntType(64), ir.IntType(32), ir.DoubleType()
        four = ir.VectorType(double, 4)
        target, lanes, offset = arguments[0], builder.inttoptr(arguments[1], word.as_pointer()), arguments[2]

        def at(address, distance):
            return builder.inttoptr(builder.add(address, ir.Constant(word, distance)), four.as_pointer())

        def joined(one, other, *order):
            return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(small, 4), list(order)))

        for column in (0, 4):
            for lane in (0, 4):
                read = []
                for k in range(4):
                    start = builder.load(builder.gep(lanes, [ir.Constant(small, lane + k)]))
                    value = builder.load(at(builder.add(start, offset), 8 * column))
                    value.align = 8
                    read.append(value)
                even = joined(read[0], read[1], 0, 4, 2, 6), joined(read[2], read[3], 0, 4, 2, 6)
                odd = joined(read[0], read[1], 1, 5, 3, 7), joined(read[2], read[3], 1, 5, 3, 7)
                turned = [joined(*half, *order) for order in ((0, 1, 4, 5), (2, 3, 6, 7)) for half in (even, odd)]
                for k in range(4):
                    builder.store(turned[k], at(target, 64 * (column + k) + 8 * lane)).align = 8
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@inline
def load_lanes(target, numbers, starts, addresses, count):
    """Numbers of eight lanes, one after the other in each, as vectors; `starts` says where each lane's are."""
    whole = count & -8
    for lane in range(SECTION_LANES):
        addresses[lane] = address_of(numbers, starts[lane])
    for k in range(0, whole, 8):
        eight_by_eight(address_of(target, SECTION_LANES * k), address_of(addresses, 0), 8 * k)
    for lane in range(SECTION_LANES):
        own = from_element(numbers, starts[lane])
        for k in range(whole, count):
            target[SECTION_LANES * k + lane] = own[k]


@inline
def load_group(sections, starts):
    """Factors of a group, and the adjoints of its rows."""
    factors, addresses, pairs, triplets = sections.factors, sections.addresses, sections.pairs_of_one, sections.triplets_of_one
    load_lanes(factors, sections.partials, starts, addresses, pairs)
    behind = from_element(factors, SECTION_LANES * pairs)
    load_lanes(behind, sections.seconds, from_element(starts, SECTION_LANES), addresses, triplets)
    work = from_element(sections.work, SECTION_LANES * CONSTANT_WORKS)
    load_lanes(work, sections.bars, from_element(starts, 2 * SECTION_LANES), addresses, sections.bars_of_one)


@inline
def add_group(sections, places):
    """Add what a group's steps gave to the entries; a number that is zero, or nan if one of them is not finite."""
    found, results_at, sound = sections.found, sections.results_at, 0.0
    for e in range(sections.entries):
        work, own = from_element(sections.work, results_at[e]), from_element(places, SECTION_LANES * e)
        # Lanes are written out, and summed in pairs, so that no sum waits for more than one other.
        a, b, c, d, p, q, r, s = work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7]
        found[own[0]] += a
        found[own[1]] += b
        found[own[2]] += c
        found[own[3]] += d
        found[own[4]] += p
        found[own[5]] += q
        found[own[6]] += r
        found[own[7]] += s
        whole = ((a + b) + (c + d)) + ((p + q) + (r + s))
        sound += whole - whole
    return sound


@inline
def step_of(steps, k, work, factors):
    """Addresses of what a step adds to, begins with, and multiplies."""
    own = from_element(steps, 4 * k)
    return work + 64 * own[0], work + 64 * own[1], factors + 64 * own[2], work + 64 * own[3]


@entry("int64(Sections,int64)")
def carry_out(sections, is_exact):
    """Carry out the steps for all groups, and add what they give; whether a sum of that is not finite."""
    steps, work, factors = sections.steps, address_of(sections.work, 0), address_of(sections.factors, 0)
    count, entries, sound = sections.step_count, sections.entries, 0.0
    for group in range(sections.groups):
        load_group(sections, from_element(sections.starts, 3 * SECTION_LANES * group))
        if is_exact != 0:
            for k in range(count):
                to, base, by, of = step_of(steps, k, work, factors)
                add_exact_products(to, base, by, of)
        else:
            for k in range(count):
                to, base, by, of = step_of(steps, k, work, factors)
                add_products(to, base, by, of)
        sound += add_group(sections, from_element(sections.places, SECTION_LANES * entries * group))
    return 0 if sound == 0.0 else 1


@entry("int64(Sections)")
def pull_adjoints(sections):
    """Adjoints of all rows from those of the results, which `bars` has; zero."""
    rows, partials, bars = sections.rows, sections.partials, sections.bars
    row, stop = sections.last, sections.pairs
    while stop > 0 and row > sections.inputs:
        first = stop - 1
        while rows[first] >= 0:
            first -= 1
        bar = bars[row]
        if bar != 0.0:
            for k in range(first, stop):
                a, p = rows[k] & MASK, partials[k]
                if p != 0.0 and a < row:
                    bars[a] += p * bar
        stop = first
        row -= 1
    return 0
