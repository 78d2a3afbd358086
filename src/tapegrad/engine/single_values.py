"""Tangents, adjoints and changes of rows in a single product: what has come to them, and where they stand.

The numbers of a row are nothing yet, or one number for all elements, or an element each. The elements of a row that is a multiple
of what stands elsewhere (a factor that is a number, and the first contribution) are not written down: the row keeps where they
are and the number. That is no other result as long as one of two numbers that would be multiplied is one or minus one.
"""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_structs import x_strides
from tapegrad.engine.memory import f64
from tapegrad.engine.strided import is_dense
from tapegrad.rules.special import mul0


@inline
def owner_of(linear, place):
    """The row that a place belongs to."""
    low, high = 0, linear.owners - 1
    while low < high:
        middle = (low + high + 1) // 2
        if linear.owner[middle].place <= place:
            low = middle
        else:
            high = middle - 1
    return linear.owner[low]


@inline
def begin_numbers(numbers, own):
    """Nothing has come to numbers that will stand at their own place."""
    numbers.own = own
    numbers.first = own
    numbers.scale = 1.0
    numbers.state = UNTOUCHED


@inline
def begin_owners(linear, dots, direction, bars, changes, products):
    """Nothing has come to any row. The first one is that of the inputs: its tangents are given, its changes are the product."""
    for number in range(linear.owners):
        owner = linear.owner[number]
        place = owner.place
        begin_numbers(owner.tangents, direction if number == 0 else from_element(dots, place))
        begin_numbers(owner.adjoints, from_element(bars, place))
        begin_numbers(owner.changes, products if number == 0 else from_element(changes, place))


@inline
def fill_numbers(out, start, count, value):
    """One number in elements from one on."""
    target = f64(address_of(out, start), count)
    for e in range(count):
        target[e] = value


@inline
def is_elsewhere(numbers):
    """Whether the elements are multiples of some that stand elsewhere."""
    return numbers.state == ELEMENTS and address_of(numbers.first, 0) != address_of(numbers.own, 0)


@inline
def are_written(numbers):
    """Note that all elements stand at their own place."""
    numbers.first = numbers.own
    numbers.scale = 1.0
    numbers.state = ELEMENTS


@inline
def need_elements(numbers, size):
    """See to it that all elements stand at their own place."""
    if is_elsewhere(numbers):
        out, values, scale = f64(numbers.own, size), f64(numbers.first, size), numbers.scale
        for e in range(size):
            out[e] = 0.0 + scale * values[e]
    elif numbers.state != ELEMENTS:
        fill_numbers(numbers.own, 0, size, numbers.own[0] if numbers.state == ALIKE else 0.0)
    are_written(numbers)


@inline
def element_at(numbers, k):
    """An element, wherever it stands."""
    return numbers.first[k] if numbers.scale == 1.0 else mul0(numbers.scale, numbers.first[k])


@inline
def borrow(numbers, first, scale, factor):
    """Let elements be the factor times the scale times others; False if that is rounded twice."""
    if abs(scale) != 1.0 and abs(factor) != 1.0:
        return False
    numbers.first = first
    numbers.scale = factor * scale
    numbers.state = ELEMENTS
    return True


@inline
def is_piece(program):
    """Whether a map reaches elements of its argument's row that stand side by side, once and in order."""
    return is_dense(program.rank, program.dimensions, x_strides(program))


@inline
def clear_around(numbers, program, owner):
    """Zeros before and behind the piece of a row that a map writes."""
    behind = program.x + program.size - owner.place
    fill_numbers(numbers.own, 0, program.x - owner.place, 0.0)
    fill_numbers(numbers.own, behind, owner.size - behind, 0.0)
