"""Triangular equations of large matrices in blocks: a small triangle is solved, and a product takes its part off the other rows.

BLAS's own function for triangles is slower than its products, of which nearly all of the work consists here. Last digits are
others than by that function, so derivatives are computed this way, and no values.
"""

from tapegrad.compilation.jit import inline
from tapegrad.engine.memory import call7, call15, f64, i64, stack_words

AS_IT_IS, TRANSPOSED = 78, 84  # N and T
ON_THE_LEFT, LOWER_HALF, UPPER_HALF, READ_DIAGONAL, UNIT_DIAGONAL = 76, 76, 85, 78, 85  # L, L, U, N, U
TRIANGLE = 64  # rows that are solved at once
LEAST_ORDER, LEAST_SIDES = 2 * TRIANGLE, 32  # from which on that is quicker
BY_FACTORS, BY_TRIANGLES, BY_PRODUCTS, EXCHANGES = range(4)  # places of the functions' addresses
words_of_blocks = stack_words(12)


@inline
def goes_in_blocks(functions, n, sides):
    """Whether so many right sides of a matrix are solved for in blocks, and all functions for that are known."""
    known = functions[BY_TRIANGLES] != 0 and functions[BY_PRODUCTS] != 0 and functions[EXCHANGES] != 0
    return known and n >= LEAST_ORDER and sides >= LEAST_SIDES


@inline
def solve_in_blocks(trsm, gemm, matrix, n, columns, sides, half, transposed):
    """Solve for so many right sides in their place by one half of a matrix, or by its transpose; the lower half has ones."""
    at = words_of_blocks()
    words, numbers = i64(at, 12), f64(at, 12)
    words[0], words[1], words[2] = ON_THE_LEFT, half, TRANSPOSED if transposed else AS_IT_IS
    words[3], words[4] = UNIT_DIAGONAL if half == LOWER_HALF else READ_DIAGONAL, AS_IT_IS
    words[5], words[6] = n, sides
    numbers[9], numbers[10] = 1.0, -1.0
    downwards = (half == LOWER_HALF) != transposed
    for done in range(0, n, TRIANGLE):
        rows = min(TRIANGLE, n - done)
        rest = n - done - rows
        start = done if downwards else rest
        other, x = start + rows if downwards else 0, columns + 8 * start
        words[7], words[8] = rows, rest
        block = matrix + 8 * start * (n + 1)
        call15(trsm, at, at + 8, at + 16, at + 24, at + 56, at + 48, at + 72, block, at + 40, x, at + 40, 1, 1, 1, 1)
        if rest > 0:
            part = matrix + 8 * (other * n + start if transposed else start * n + other)
            to = columns + 8 * other
            call15(
                gemm, at + 16, at + 32, at + 64, at + 48, at + 56, at + 80, part, at + 40, x, at + 40, at + 72, to, at + 40, 1, 1
            )


@inline
def exchange_sides(laswp, n, columns, sides, pivots, backwards):
    """Exchange the rows of right sides, as those of the factored matrix were, or back."""
    at = words_of_blocks()
    words = i64(at, 12)
    words[0], words[1], words[2], words[3] = sides, n, 1, -1 if backwards else 1
    call7(laswp, at, columns, at + 8, at + 16, at + 8, pivots, at + 24)


@inline
def solve_large(functions, matrix, n, pivots, columns, sides, transposed):
    """Solve for columns in their place by both factors of a matrix, or of its transpose."""
    trsm, gemm, laswp = functions[BY_TRIANGLES], functions[BY_PRODUCTS], functions[EXCHANGES]
    if transposed:
        solve_in_blocks(trsm, gemm, matrix, n, columns, sides, UPPER_HALF, True)
        solve_in_blocks(trsm, gemm, matrix, n, columns, sides, LOWER_HALF, True)
        exchange_sides(laswp, n, columns, sides, pivots, True)
    else:
        exchange_sides(laswp, n, columns, sides, pivots, False)
        solve_in_blocks(trsm, gemm, matrix, n, columns, sides, LOWER_HALF, False)
        solve_in_blocks(trsm, gemm, matrix, n, columns, sides, UPPER_HALF, False)
