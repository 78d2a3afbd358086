"""Products of matrices: in registers where they stand in the caches, else by the loop of NumPy's `matmul`, which knows BLAS."""

from __future__ import annotations

from tapegrad.programs.fused.expressions import Shape
from tapegrad.programs.fused.lines import Lines
from tapegrad.programs.fused.product_tiles import Matrix, has_tiles, product_in_tiles
from tapegrad.programs.fused.schedule import Group
from tapegrad.programs.fused.shared_functions import Places, product_loop
from tapegrad.programs.fused.single_precision import FLOAT32, loop_named

__all__ = ["product_code"]


def product_code(group: Group, given: Places) -> tuple[list[str], set[str]]:
    """Lines of a function, and declarations.

    The loop takes the addresses of the operands and the result, how many products, rows, inner elements and columns there are, and
    the bytes from one product, row and column to the next.
    """
    graph, effect = group.graph, group.effects[0]
    name = product_loop(group)
    is_single, item = (True, 4) if loop_named(name)[1] == FLOAT32 else (False, 8)
    _, left, right = graph.nodes[effect.node]
    places = [graph.nodes[left][1:], graph.nodes[right][1:], (effect.buffer, effect.offset, effect.strides)]
    rows, inner = (1, *graph.spaces[left])[-2:]
    columns = (*graph.spaces[right], 1)[1]
    of_x, of_y = (0, *places[0][2])[-2:], (*places[1][2], 0)[:2]
    of_z = _two(effect.strides, len(graph.spaces[left]), len(graph.spaces[right]))
    lines = Lines()
    pointers = [lines.element(*given.pointer(buffer, offset), is_single) for buffer, offset, _ in places]
    if has_tiles(rows, inner, columns, of_y, of_z[1]):
        x, y, z = map(Matrix, pointers, *zip(of_x, of_y, of_z, strict=True))
        product_in_tiles(lines, x, y, z, (rows, inner, columns), is_single)
        return lines.lines, lines.declared
    called, data = given.loop(name)
    for part, count in (("places", 3), ("counts", 4), ("steps", 9)):
        lines.do(f"%{part} = alloca [{count} x i64], align 8")
    for number, pointer in enumerate(pointers):
        place = lines.new(f"getelementptr ptr, ptr %places, i64 {number}")
        lines.do(f"store ptr {pointer}, ptr {place}, align 8")
    for part, values in (("counts", (1, rows, inner, columns)), ("steps", (0, 0, 0, *(item * s for s in (*of_x, *of_y, *of_z))))):
        for number, value in enumerate(values):
            place = lines.new(f"getelementptr i64, ptr %{part}, i64 {number}")
            lines.do(f"store i64 {value}, ptr {place}, align 8")
    lines.do(f"call void {called}(ptr %places, ptr %counts, ptr %steps, ptr {data})")
    return lines.lines, lines.declared


def _two(strides: Shape, x_rank: int, y_rank: int) -> Shape:
    """Strides of the rows and columns of a result that lacks what a vector has none of."""
    found = iter(strides)
    return (next(found) if x_rank == 2 else 0, next(found) if y_rank == 2 else 0)
