"""What vjps are written with in the plain pass, compiled: on untracked tensors of small float64 arrays, given by position.

For all else the Python form is called, which also says what is wrong.
"""

from tapegrad.compilation.jit import inline, kernel
from tapegrad.engine.hosted_results import fit_for_product, is_factor, multiplied
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_type_number,
    load_f64,
    release,
    retain,
)
from tapegrad.engine.objects import (
    append_to_list,
    call_method_form,
    call_with_words,
    clear_error,
    data_of,
    integer_value,
    item_of_tuple,
    length_of_tuple,
    new_array,
    new_array_like,
    new_float,
    new_list,
    tensor_around,
    type_of,
)
from tapegrad.engine.structs import doubles_at, words_at


@inline
def plain_data(tape, t):
    """Data of an untracked tensor that are an array, 0 for others."""
    if type_of(t) != tape.plain_tensor:
        return 0
    data = data_of(tape, t)
    return data if data != 0 and type_of(data) == tape.array_type else 0


@inline
def plain_product(tape, x, y):
    """The product of vectors, matrices or batches of matrices; as `plain_form`, or 0 if it is left to the Python form."""
    a, b = plain_data(tape, x), plain_data(tape, y)
    if a == 0 or b == 0:
        return 0
    z = 0
    if array_rank(a) > 2 and array_rank(b) > 2:
        if array_dimensions(a)[array_rank(a) - 1] == 1 and array_size(a) + array_size(b) > LARGEST_BLOCK:
            return 0  # outer products, which NumPy makes by the BLAS
        z = multiplied(tape, tape.matmul, a, b)
    elif is_factor(tape, a) and is_factor(tape, b) and array_rank(a) + array_rank(b) > 2 and fit_for_product(a, b):
        if array_rank(a) == 2 and array_dimensions(a)[1] == 1 and array_size(a) * array_size(b) > LARGEST_BLOCK:
            return 0  # outer products as well
        z = multiplied(tape, tape.dot, a, b)
    if z == 0 or type_of(z) != tape.array_type:
        clear_error()
        if z != 0:
            release(z)
        return 0
    return tensor_around(tape, z)


@inline
def plain_transpose(tape, x):
    """The view with the last two dimensions exchanged."""
    a = plain_data(tape, x)
    if a == 0 or array_rank(a) < 2:
        return 0
    z = call_method_form(tape.swapaxes, a, tape.last_axes, 2, 0)
    return tensor_around(tape, z)


@inline
def plain_outer(tape, x, y):
    """All products of elements of two small vectors."""
    a, b = plain_data(tape, x), plain_data(tape, y)
    if not is_factor(tape, a) or not is_factor(tape, b) or array_rank(a) != 1 or array_rank(b) != 1:
        return 0
    n, m = array_size(a), array_size(b)
    if n * m > LARGEST_BLOCK or not array_is_contiguous(a) or not array_is_contiguous(b):
        return 0
    tape.lengths[0], tape.lengths[1] = n, m
    z = new_array(tape, FLOAT64, 2, tape.lengths)
    if z == 0:
        clear_error()
        return 0
    left, right, product = doubles_at(array_data(a)), doubles_at(array_data(b)), doubles_at(array_data(z))
    for i in range(n):
        for j in range(m):
            product[m * i + j] = left[i] * right[j]
    return tensor_around(tape, z)


@inline
def plain_triangle(tape, x, upper, strict):
    """Small matrices with zeros below their diagonals, or above; if `strict`, on them too."""
    a = plain_data(tape, x)
    if a == 0 or array_rank(a) < 2 or array_type_number(a) != FLOAT64 or not array_is_contiguous(a):
        return 0
    if array_size(a) > LARGEST_BLOCK or array_size(a) == 0:
        return 0
    rows, columns = array_dimensions(a)[array_rank(a) - 2], array_dimensions(a)[array_rank(a) - 1]
    z = new_array_like(tape, a)
    if z == 0:
        clear_error()
        return 0
    source, target = doubles_at(array_data(a)), doubles_at(array_data(z))
    shift = 1 if strict else 0
    for row in range(array_size(a) // columns):
        own, start = row % rows, row * columns
        for j in range(columns):
            inside = j >= own + shift if upper else j <= own - shift
            target[start + j] = source[start + j] if inside else 0.0
    return tensor_around(tape, z)


@inline
def plain_mirrored(tape, x):
    """Small symmetric matrices with the lower triangles of others."""
    a = plain_data(tape, x)
    if a == 0 or array_rank(a) < 2 or array_type_number(a) != FLOAT64 or not array_is_contiguous(a):
        return 0
    n = array_dimensions(a)[array_rank(a) - 1]
    if array_size(a) > LARGEST_BLOCK or array_size(a) == 0 or array_dimensions(a)[array_rank(a) - 2] != n:
        return 0
    z = new_array_like(tape, a)
    if z == 0:
        clear_error()
        return 0
    source, target = doubles_at(array_data(a)), doubles_at(array_data(z))
    for row in range(array_size(a) // n):
        i, start = row % n, (row - row % n) * n
        for j in range(n):
            lower = i * n + j if j <= i else j * n + i
            target[start + i * n + j] = source[start + lower] + 0.0  # a sum with zeros beside a triangle
    return tensor_around(tape, z)


@inline
def piece_at(tape, address, shape):
    """A new tensor of the shape in a tuple with the numbers from an address on; 0 without memory."""
    rank = length_of_tuple(shape)
    if rank == 0:
        return tensor_around(tape, new_float(load_f64(address)))
    for d in range(rank):
        tape.lengths[d] = integer_value(item_of_tuple(shape, d))
    z = new_array(tape, FLOAT64, rank, tape.lengths)
    if z == 0:
        clear_error()
        return 0
    source, target = doubles_at(address), doubles_at(array_data(z))
    for j in range(array_size(z)):
        target[j] = source[j]
    return tensor_around(tape, z)


@inline
def size_of_shape(tape, shape):
    """Elements of an array whose shape is in a tuple; -1 for what is none."""
    if type_of(shape) != tape.tuple_type or length_of_tuple(shape) > MOST_LENGTHS:
        return -1
    size = 1
    for d in range(length_of_tuple(shape)):
        size *= integer_value(item_of_tuple(shape, d))
    return size


@inline
def plain_pieces(tape, x, shapes):
    """A list of the arrays that stand one after the other in a vector."""
    a = plain_data(tape, x)
    if a == 0 or type_of(shapes) != tape.tuple_type or array_rank(a) != 1 or array_type_number(a) != FLOAT64:
        return 0
    if not array_is_contiguous(a) or array_size(a) > LARGEST_BLOCK:
        return 0
    count, total = length_of_tuple(shapes), 0
    for k in range(count):
        size = size_of_shape(tape, item_of_tuple(shapes, k))
        if size < 0:
            return 0
        total += size
    found = new_list(0) if total == array_size(a) else 0
    address = array_data(a)
    for k in range(count if found != 0 else 0):
        shape = item_of_tuple(shapes, k)
        piece = piece_at(tape, address, shape)
        if piece == 0 or append_to_list(found, piece) != 0:
            clear_error()
            if piece != 0:
                release(piece)
            release(found)
            return 0
        release(piece)
        address += 8 * size_of_shape(tape, shape)
    return found


@inline
def has_shape(tape, a, shape, first):
    """Whether the dimensions of an array from one on are those in a tuple."""
    if array_rank(a) - first != length_of_tuple(shape):
        return False
    for d in range(array_rank(a) - first):
        if integer_value(item_of_tuple(shape, d)) != array_dimensions(a)[first + d]:
            return False
    return True


@inline
def plain_sum_to(tape, x, shape):
    """The tensor itself, where it has the shape; or the sum over dimensions in front, one after the other."""
    a = plain_data(tape, x)
    if a == 0 or type_of(shape) != tape.tuple_type:
        return 0
    first = array_rank(a) - length_of_tuple(shape)
    if first < 0 or not has_shape(tape, a, shape, first):
        return 0
    if first == 0:
        retain(x)
        return x
    size = array_size(a)
    if tape.sums_by_rows == 0 or array_type_number(a) != FLOAT64 or not array_is_contiguous(a) or size > LARGEST_BLOCK or size == 0:
        return 0
    columns = 1
    for d in range(length_of_tuple(shape)):
        tape.lengths[d] = array_dimensions(a)[first + d]
        columns *= tape.lengths[d]
    if columns == 1:
        return 0  # which NumPy sums in another order
    z = new_array(tape, FLOAT64, length_of_tuple(shape), tape.lengths)
    if z == 0:
        clear_error()
        return 0
    source, target = doubles_at(array_data(a)), doubles_at(array_data(z))
    for j in range(columns):
        target[j] = source[j]
    for row in range(1, size // columns):
        for j in range(columns):
            target[j] = target[j] + source[row * columns + j]
    return tensor_around(tape, z)


@inline
def copy_of_shape(tape, a, rank):
    """A new tensor with the numbers of a small array, and the lengths that stand in the room for them; 0 without memory."""
    z = new_array(tape, FLOAT64, rank, tape.lengths)
    if z == 0:
        clear_error()
        return 0
    source, target = doubles_at(array_data(a)), doubles_at(array_data(z))
    for j in range(array_size(a)):
        target[j] = source[j]
    return tensor_around(tape, z)


@inline
def is_small_block(tape, a):
    """Whether data are a small contiguous float64 array with dimensions."""
    if a == 0 or array_type_number(a) != FLOAT64 or not array_is_contiguous(a):
        return False
    return 0 < array_rank(a) < MOST_LENGTHS and array_size(a) <= LARGEST_BLOCK


@inline
def plain_restore(tape, x, axes, keepdim, shape):
    """A reduction over axes of something of a shape, with the dimensions that were removed as dimensions of one element."""
    if type_of(axes) != tape.tuple_type or type_of(shape) != tape.tuple_type:
        return 0
    rank, removed = length_of_tuple(shape), length_of_tuple(axes)
    if keepdim == tape.true or removed == rank:
        retain(x)
        return x
    a = plain_data(tape, x)
    if keepdim != tape.false or not is_small_block(tape, a) or array_rank(a) != rank - removed:
        return 0
    own, k = 0, 0
    for d in range(rank):
        if k < removed and integer_value(item_of_tuple(axes, k)) == d:
            tape.lengths[d] = 1
            k += 1
        else:
            if own >= array_rank(a):
                return 0
            tape.lengths[d] = array_dimensions(a)[own]
            own += 1
    return copy_of_shape(tape, a, rank) if k == removed else 0


@inline
def plain_unsqueeze(tape, x, dim):
    """A dimension of one element more."""
    a = plain_data(tape, x)
    if not is_small_block(tape, a) or type_of(dim) != tape.int_type:
        return 0
    rank, at = array_rank(a) + 1, integer_value(dim)
    at = at + rank if at < 0 else at
    if not 0 <= at < rank:
        return 0
    for d in range(rank):
        tape.lengths[d] = 1 if d == at else array_dimensions(a)[d if d < at else d - 1]
    return copy_of_shape(tape, a, rank)


@kernel("int64(Tape,int64,int64,int64,int64)")
def plain_form(tape, which, owner, operands, given):
    """What vjps are written with, on untracked tensors: a new reference, 0 for an exception."""
    words, t = words_at(operands), 0
    if tape.tensor_type == tape.plain_tensor:
        if which == PLAIN_PRODUCT and given == 2:
            t = plain_product(tape, words[0], words[1])
        elif which == PLAIN_TRANSPOSE and given == 1:
            t = plain_transpose(tape, words[0])
        elif which == PLAIN_OUTER and given == 2:
            t = plain_outer(tape, words[0], words[1])
        elif which == PLAIN_RESTORE and given == 4:
            t = plain_restore(tape, words[0], words[1], words[2], words[3])
        elif which == PLAIN_UNSQUEEZE and given == 2:
            t = plain_unsqueeze(tape, words[0], words[1])
        elif which == PLAIN_MIRRORED and given == 1:
            t = plain_mirrored(tape, words[0])
        elif which == PLAIN_PIECES and given == 2:
            t = plain_pieces(tape, words[0], words[1])
        elif which == PLAIN_SUM_TO and given == 2:
            t = plain_sum_to(tape, words[0], words[1])
        elif which == PLAIN_TRIANGLE and (given == 2 or given == 3):
            strict = given == 3 and words[2] == tape.true
            if given == 2 or strict or words[2] == tape.false:
                t = plain_triangle(tape, words[0], words[1] == tape.true, strict)
    return t if t != 0 else call_with_words(tape.plain_forms[which], operands, given)
