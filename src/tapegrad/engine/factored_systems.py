"""Linear systems of equations solved by LAPACK, whose factors stay, as derivatives need the same matrices again; and triangles.

LAPACK's functions are called by address, by Fortran's rules: every argument is an address, and a length of text comes at the end.
Fortran reads arrays in C order as their transposes, so equations are laid out column by column first, or are taken as they are
where the unknown matrix stands on the left.
"""

from math import exp, inf, log

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.blocked_triangles import (
    AS_IT_IS,
    BY_FACTORS,
    LOWER_HALF,
    ON_THE_LEFT,
    READ_DIAGONAL,
    TRANSPOSED,
    UNIT_DIAGONAL,
    UPPER_HALF,
    goes_in_blocks,
    solve_large,
)
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_rank,
    array_size,
    array_strides,
    call6,
    call7,
    call8,
    call10,
    call11,
    call15,
    f64,
    i64,
)

ORDER, COLUMNS, FAILURE, LETTER = range(4)  # places of numbers that LAPACK is given the addresses of
ON_THE_RIGHT = 82  # R
NEGATIVE_ZERO = -(1 << 63)  # its bits


@inline
def turn(out, values, rows, columns):
    """The transpose of a matrix, eight columns at once: reads and writes go on in order, in half of the time of square pieces."""
    whole = columns - columns % 8
    for left in range(0, whole, 8):
        for i in range(rows):
            source, target = i * columns + left, left * rows + i
            for j in range(8):
                out[target + j * rows] = values[source + j]
    for j in range(whole, columns):
        for i in range(rows):
            out[j * rows + i] = values[i * columns + j]


@inline
def lay_out(out, values, rows, columns, as_it_is):
    """A matrix as Fortran reads it, or, `as_it_is`, its transpose."""
    if as_it_is or columns == 1 or rows == 1:
        for j in range(rows * columns):
            out[j] = values[j]
    else:
        turn(out, values, rows, columns)


@inline
def lay_out_all(pcolumns, pb, n, k, as_they_are):
    """The right sides of all systems, one after the other."""
    size = n * k
    for s in range(array_dimensions(pb)[0]):
        lay_out(f64(array_data(pcolumns) + s * size * 8, size), f64(array_data(pb) + s * size * 8, size), n, k, as_they_are)


@inline
def lay_back(px, pcolumns, n, k):
    """The solutions, if they were not made in their own place."""
    if px != pcolumns:
        size = n * k
        for s in range(array_dimensions(px)[0]):
            turn(f64(array_data(px) + s * size * 8, size), f64(array_data(pcolumns) + s * size * 8, size), k, n)


@inline
def solve_with(getrs, pwords, lu, pivots, columns, count, letter):
    """Solve for some columns in their place."""
    at, words = array_data(pwords), i64(array_data(pwords), 4)
    words[COLUMNS], words[LETTER] = count, letter
    call10(getrs, at + 8 * LETTER, at, at + 8 * COLUMNS, lu, at, pivots, columns, at, at + 8 * FAILURE, 1)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def factor_and_solve(gesv, getrs, px, pcolumns, plu, ppivots, pa, pb, pwords, right):
    """Solutions x of a x = b, or with `right` of x a = b, for a matrix each, or one for all; 0 where one is singular.

    All arrays are contiguous. Those of a and b have three dimensions; the factors are as many as the matrices. The columns are an
    array like b, and are x itself where `right` or vectors spare the change of order.
    """
    n, k = array_dimensions(pa)[2], array_dimensions(pb)[1 if right else 2]
    words, size, matrices = i64(array_data(pwords), 4), n * n, array_dimensions(pa)[0]
    words[ORDER], words[FAILURE] = n, 0
    lay_out_all(pcolumns, pb, n, k, right)
    for s in range(array_dimensions(pb)[0]):
        lu, pivots, columns = array_data(plu) + s * size * 8, array_data(ppivots) + s * n * 8, array_data(pcolumns) + s * n * k * 8
        if s < matrices:
            lay_out(f64(lu, size), f64(array_data(pa) + s * size * 8, size), n, n, right)
            words[COLUMNS], at = k, array_data(pwords)
            call8(gesv, at, at + 8 * COLUMNS, lu, at, pivots, columns, at, at + 8 * FAILURE)
            if words[FAILURE] != 0:
                return 0
        else:
            solve_with(getrs, pwords, array_data(plu), array_data(ppivots), columns, k, AS_IT_IS)
    lay_back(px, pcolumns, n, k)
    return 1


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def solve_again(pfunctions, px, pcolumns, plu, ppivots, pb, pwords, transposed, right):
    """Solutions for other right sides, of the factored matrices or of their transposes; all sides of one matrix at once.

    Of the functions there are the addresses, 0 for those that are not known; the first one is.
    """
    n, k, count = array_dimensions(plu)[2], array_dimensions(pb)[1 if right else 2], array_dimensions(pb)[0]
    words, matrices, letter = i64(array_data(pwords), 4), array_dimensions(plu)[0], TRANSPOSED if transposed else AS_IT_IS
    words[ORDER], words[FAILURE] = n, 0
    lay_out_all(pcolumns, pb, n, k, right)
    at_once, functions = k * count if matrices == 1 else k, i64(array_data(pfunctions), array_size(pfunctions))
    in_blocks = goes_in_blocks(functions, n, at_once)
    for s in range(k * count // max(at_once, 1)):
        lu, pivots = array_data(plu) + s * n * n * 8, array_data(ppivots) + s * n * 8
        columns = array_data(pcolumns) + s * n * at_once * 8
        if in_blocks:
            solve_large(functions, lu, n, pivots, columns, at_once, transposed != 0)
        else:
            solve_with(functions[BY_FACTORS], pwords, lu, pivots, columns, at_once, letter)
    lay_back(px, pcolumns, n, k)
    return 1


@inline
def pivot(pivots, j, wide):
    """With which row a row was exchanged, counted from one; integers of 64 bits or of 32."""
    word = pivots[j if wide else j // 2]
    return word if wide else (word >> 32 if j % 2 else word & 0xFFFFFFFF)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def factored_determinants(getrf, psigns, plogarithms, plu, ppivots, pa, pwords, wide):
    """Signs and logarithms of determinants as `numpy.linalg.slogdet` has them, or determinants if there is no array for signs.

    The answer is whether all matrices are regular; their factors stay.
    """
    n, count, regular = array_dimensions(pa)[2], array_dimensions(pa)[0], 1
    words, at, size = i64(array_data(pwords), 4), array_data(pwords), n * n
    words[ORDER] = n
    signs, logarithms = f64(array_data(psigns if psigns != 0 else plogarithms), count), f64(array_data(plogarithms), count)
    for s in range(count):
        lu, pivots = array_data(plu) + s * size * 8, array_data(ppivots) + s * n * 8
        words[FAILURE] = 0
        turn(f64(lu, size), f64(array_data(pa) + s * size * 8, size), n, n)
        call6(getrf, at, at, lu, at, pivots, at + 8 * FAILURE)
        sign, total, factors, exchanged = 1.0, 0.0, f64(lu, size), i64(pivots, n)
        for j in range(n):
            if pivot(exchanged, j, wide) != j + 1:
                sign = -sign
        for j in range(n):
            element = factors[j * n + j]
            if element < 0.0:
                sign, element = -sign, -element
            total += log(element)
        if words[FAILURE] > 0:
            sign, total, regular = 0.0, -inf, 0
        if psigns != 0:
            signs[s], logarithms[s] = sign, total
        else:
            logarithms[s] = sign * exp(total)
    return regular


@entry("int64(int64,int64,int64,int64,int64,int64)", nogil=True)
def invert_factored(getri, plu, ppivots, proom, length, pwords):
    """Inverses in the place of factors, each as Fortran has it."""
    n, count, at = array_dimensions(plu)[2], array_dimensions(plu)[0], array_data(pwords)
    words = i64(at, 4)
    words[ORDER], words[COLUMNS], words[FAILURE] = n, length, 0
    for s in range(count):
        lu, pivots = array_data(plu) + s * n * n * 8, array_data(ppivots) + s * n * 8
        call7(getri, at, lu, at, pivots, array_data(proom), at + 8 * COLUMNS, at + 8 * FAILURE)
        if words[FAILURE] != 0:
            return 0
    return 1


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def apply_triangle(function, px, pa, pwords, left, upper, transposed, unit):
    """The product of a triangle and x, or the solution of its equations, in the place of x, for each matrix of a batch.

    Both are in C order. The function is BLAS's ``dtrmm`` or ``dtrsm``. For Fortran everything is the other way round. There is
    room for eight words.
    """
    words, at = i64(array_data(pwords), 8), array_data(pwords)
    last = array_rank(px) - 1
    columns, rows, n = array_dimensions(px)[last], array_dimensions(px)[last - 1], array_dimensions(pa)[last]
    words[0], words[1], words[2] = columns, rows, n
    words[3], words[4] = ON_THE_RIGHT if left else ON_THE_LEFT, LOWER_HALF if (upper != 0) != (transposed != 0) else UPPER_HALF
    words[5], words[6] = TRANSPOSED if transposed else AS_IT_IS, UNIT_DIAGONAL if unit else READ_DIAGONAL
    f64(at + 56, 1)[0] = 1.0
    a, x = array_data(pa), array_data(px)
    for _ in range(array_size(px) // max(rows * columns, 1)):
        call15(function, at + 24, at + 32, at + 40, at + 48, at, at + 8, at + 56, a, at + 16, x, at, 1, 1, 1, 1)
        a += 8 * n * n
        x += 8 * rows * columns
    return 0


@inline
def gather_triangle(out, a, row, column, n, unit):
    """The upper triangle of a matrix with rows and columns so many bytes apart, as Fortran has it; whether its diagonal is finite.

    What is below it is not read. Eight columns at once, as in `turn`.
    """
    is_finite = 1
    for left in range(0, n, 8):
        width = min(8, n - left)
        for i in range(min(left + 8, n)):
            source, target = a + i * row + left * column, left * n + i
            for j in range(width):
                out[target + j * n] = f64(source + j * column, 1)[0]
    for j in range(n):
        if unit:
            out[j * (n + 1)] = 1.0
        is_finite &= int(abs(out[j * (n + 1)]) < inf)
    return is_finite


@inline
def solve_triangle(trsm, trsv, pwords, matrix, columns, half, diagonal):
    """Solve for columns in their place by one half of a matrix, both as Fortran has them; one column by a function of its own."""
    at, words = array_data(pwords), i64(array_data(pwords), 8)
    words[4], words[6] = half, diagonal
    if words[1] == 1:
        call11(trsv, at + 32, at + 40, at + 48, at, matrix, at, columns, at + 16, 1, 1, 1)
    else:
        call15(trsm, at + 24, at + 32, at + 40, at + 48, at, at + 8, at + 56, matrix, at, columns, at, 1, 1, 1, 1)


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def substitute_upwards(trsm, trsv, px, pa, proom, pwords, unit):
    """Solutions of a batch of upper triangles in the place of right sides, with the bits of the general solver.

    Both are parts of arrays of three dimensions, x of a contiguous one; one matrix may serve for all. There is room for a matrix
    and a right side, and for eight words. The answer is 0 if something is not finite, which elimination spreads.

    Of the solver's two halves the first one has nothing but zeros to subtract. That is left out, unless there are negative zeros,
    whose sign it may change.
    """
    count, n, k = array_dimensions(px)[0], array_dimensions(px)[1], array_dimensions(px)[2]
    step, row, column = array_strides(pa)[0] if array_dimensions(pa)[0] > 1 else 0, array_strides(pa)[1], array_strides(pa)[2]
    words = i64(array_data(pwords), 8)
    words[0], words[1], words[2], words[3], words[5] = n, k, 1, ON_THE_LEFT, AS_IT_IS
    f64(array_data(pwords) + 56, 1)[0] = 1.0
    matrix = array_data(proom)
    columns, triangle, is_finite = matrix + 8 * n * n, f64(matrix, n * n), 1
    sides, bits = f64(columns, n * k), i64(columns, n * k)
    for s in range(count):
        if s == 0 or step != 0:
            is_finite &= gather_triangle(triangle, array_data(pa) + s * step, row, column, n, unit)
        x = f64(array_data(px) + s * array_strides(px)[0], n * k)
        lay_out(sides, x, n, k, False)
        negative_zeros = 0
        for j in range(n * k):
            negative_zeros |= int(bits[j] == NEGATIVE_ZERO)
        if negative_zeros:
            for j in range(n):
                for i in range(j + 1, n):
                    triangle[j * n + i] = 0.0
            solve_triangle(trsm, trsv, pwords, matrix, columns, LOWER_HALF, UNIT_DIAGONAL)
        solve_triangle(trsm, trsv, pwords, matrix, columns, UPPER_HALF, READ_DIAGONAL)
        for j in range(n * k):
            is_finite &= int(abs(sides[j]) < inf)
        lay_out(x, sides, k, n, False)
    return is_finite


@inline
def largest_sum(matrix, n, step, along):
    """The largest sum of magnitudes of a line of a matrix, whose elements are `along` apart, the next line `step`; nan if one is.

    Eight lines at once: each sum waits for its own additions only.
    """
    largest = 0.0
    for first in range(0, n, 8):
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        at = first * step
        if first + 8 <= n:
            for _ in range(n):
                a += abs(matrix[at])
                b += abs(matrix[at + step])
                c += abs(matrix[at + 2 * step])
                d += abs(matrix[at + 3 * step])
                e += abs(matrix[at + 4 * step])
                f += abs(matrix[at + 5 * step])
                g += abs(matrix[at + 6 * step])
                h += abs(matrix[at + 7 * step])
                at += along
        else:
            for line in range(first, n):
                total = 0.0
                for i in range(n):
                    total += abs(matrix[line * step + i * along])
                a = total if total > a or total != total else a
        total = a + b + c + d + e + f + g + h
        if total != total:
            return total
        largest = max(largest, a, b, c, d, e, f, g, h)
    return largest


@entry("int64(int64,int64,int64,float64,float64)")
def are_well_conditioned(pa, pinverses, pvalues, bound, least):
    """Whether condition numbers of finite matrices are below a bound, and magnitudes of their determinants normal numbers.

    The inverses are as Fortran has them. All arrays are contiguous float64. What is not finite makes a sum that is not.
    """
    n, values = array_dimensions(pa)[array_rank(pa) - 1], f64(array_data(pvalues), array_size(pvalues))
    for s in range(array_size(pvalues)):
        if not (abs(values[s]) >= least and abs(values[s]) < inf):
            return 0
    for s in range(array_size(pvalues)):
        a, inverse = f64(array_data(pa) + 8 * s * n * n, n * n), f64(array_data(pinverses) + 8 * s * n * n, n * n)
        if not (largest_sum(a, n, 1, n) * largest_sum(inverse, n, n, 1) < bound):
            return 0
    return 1
