"""Products of matrices by code of their own, with last digits of their own: a tile of the result stands in registers.

Each element is the sum of its products in their order, by fused operations. Nothing is packed but a transposed second matrix, so
this is for matrices that stand in the caches; of others BLAS is the quicker one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapegrad.programs.fused.lines import Lines

__all__ = ["Matrix", "has_tiles", "product_in_tiles"]

LONGEST, MOST = 2048, 1 << 25  # inner elements, and multiplications, up to which the other matrix stays in the caches
LARGEST = 1 << 20  # elements of either matrix
PACKED, ROWS = 512, 4  # inner elements up to which columns of a transposed matrix are copied to the stack, and rows that pay for it


class Matrix(NamedTuple):
    """Where a matrix stands: the name of a pointer to its first element, and how many elements rows and columns lie apart."""

    place: str
    row: int
    column: int


def has_tiles(rows: int, inner: int, columns: int, of_y: tuple[int, int], z_step: int) -> bool:
    """Whether a product is of a kind that this is for: rows or columns of `y`, and rows of the result, lie element by element."""
    is_small = 0 < inner <= LONGEST and rows * inner * columns <= MOST and inner * max(rows, columns) <= LARGEST
    is_beside = of_y[1] == 1 or (of_y[0] == 1 and inner <= PACKED and rows >= ROWS)
    return is_small and is_beside and z_step == 1 and columns > 1 and _fuses_operations()


@functools.cache
def _fuses_operations() -> bool:
    """Whether the processor has operations that multiply and add with one rounding."""
    import llvmlite.binding as llvm

    return not llvm.get_default_triple().startswith(("x86", "i")) or bool(llvm.get_host_cpu_features().get("fma"))


@functools.cache
def _registers() -> tuple[int, int, int]:
    """Bytes of a register here, how many of them hold results, and the most rows of a tile."""
    import llvmlite.binding as llvm

    return (64, 16, 8) if llvm.get_host_cpu_features().get("avx512f") else (32, 12, 6)


class _Tiles:
    def __init__(self, lines: Lines, x: Matrix, y: Matrix, z: Matrix, counts: tuple[int, int, int], is_single: bool) -> None:
        self.lines, self.x, self.y, self.z, self.is_single = lines, x, y, z, is_single
        self.rows, self.inner, self.columns = counts
        size, results, most_rows = _registers()
        self.kind, self.item = ("float", 4) if is_single else ("double", 8)
        self.lanes = size // self.item
        self.vector = f"<{self.lanes} x {self.kind}>"
        self.name = f"v{self.lanes}f{32 if is_single else 64}"
        self.height = next(n for n in (8, 6, 4, 2, 1) if n <= min(self.rows, most_rows))
        self.width = self.lanes * min(results // self.height, -(-self.columns // self.lanes))
        lines.declared.add(f"declare {self.vector} @llvm.fma.{self.name}({', '.join([self.vector] * 3)})")

    def all(self) -> None:
        """All tiles: along the longer one of what both other matrices are read by again."""
        along_columns = functools.partial(self._along, self.columns, self.width)
        along_rows = functools.partial(self._along, self.rows, self.height)
        if self.y.column != 1:
            self.lines.do(f"%panel = alloca [{self.inner * self.width} x {self.kind}], align {self.lanes * self.item}")
            along_columns(lambda column, width: along_rows(self._packed(column, width)))
        elif self.inner > self.rows:
            along_columns(lambda column, width: along_rows(lambda row, height: self._tile(row, height, column, width)))
        else:
            along_rows(lambda row, height: along_columns(lambda column, width: self._tile(row, height, column, width)))

    def _along(self, count: int, size: int, do: Any) -> None:
        """Do something for each piece of a size, and for the rest."""
        whole = count - count % size

        def body(start: str, states: list[str]) -> list[str]:
            do(start, size)
            return states

        if whole == size:
            do(0, size)
        elif whole:
            self.lines.loop(0, whole, size, [], "", body)
        if whole < count:
            do(whole, count - whole)

    def _packed(self, column: Any, width: int) -> Callable[[Any, int], None]:
        """Copy so many columns of a transposed matrix beside each other; what makes a tile with these."""
        panel = Matrix("%panel", -(-width // self.lanes) * self.lanes, 1)
        copied = functools.partial(self._copied, panel, column, width)
        whole = self.inner - self.inner % self.lanes

        def body(start: str, states: list[str]) -> list[str]:
            copied(start, self.lanes)
            return states

        if whole:
            self.lines.loop(0, whole, self.lanes, [], "", body)
        if whole < self.inner:
            copied(whole, self.inner - whole)
        return lambda row, height: self._tile(row, height, column, width, panel)

    def _copied(self, panel: Matrix, column: Any, width: int, start: Any, length: int) -> None:
        """So many elements of these columns, which become rows."""
        lines = self.lines
        for first in range(0, width, self.lanes):
            there = range(first, min(first + self.lanes, width))
            read = [self._read(self._place(self.y, start, lines.integer("add", column, c)), length) for c in there]
            rows = self._transposed(read + ["zeroinitializer"] * (self.lanes - len(read)))
            for k in range(length):
                self._store(rows[k], self._place(panel, lines.integer("add", start, k), first), self.lanes)

    def _transposed(self, rows: list[str]) -> list[str]:
        """The columns of a square of numbers: blocks beside its diagonal change places, in halves of halves."""
        far = self.lanes // 2
        while far:
            for k in (k for k in range(self.lanes) if not k & far):
                above, below = rows[k], rows[k + far]
                rows[k] = self._chosen(above, below, [j if not j & far else self.lanes + j - far for j in range(self.lanes)])
                rows[k + far] = self._chosen(above, below, [j + far if not j & far else self.lanes + j for j in range(self.lanes)])
            far //= 2
        return rows

    def _chosen(self, x: str, y: str, places: Sequence[int]) -> str:
        """Elements of two registers."""
        mask = f"<{self.lanes} x i32> <{', '.join(f'i32 {p}' for p in places)}>"
        return self.lines.new(f"shufflevector {self.vector} {x}, {self.vector} {y}, {mask}")

    def _tile(self, row: Any, height: int, column: Any, width: int, panel: Matrix | None = None) -> None:
        lines = self.lines
        of_rows = [self._place(self.x, lines.integer("add", row, r), 0) for r in range(height)]
        y, first = (self.y, column) if panel is None else (panel, 0)
        of_columns = [self._place(y, 0, lines.integer("add", first, c)) for c in range(0, width, self.lanes)]
        lengths = [min(self.lanes, width - c) for c in range(0, width, self.lanes)]
        zeros = ["zeroinitializer"] * (height * len(lengths))
        body = functools.partial(self._products, of_rows, of_columns, lengths, y.row)
        found = lines.loop(0, self.inner, 1, zeros, self.vector, body)
        for r in range(height):
            for k, length in enumerate(lengths):
                place = self._place(self.z, lines.integer("add", row, r), lines.integer("add", column, k * self.lanes))
                self._store(found[r * len(lengths) + k], place, length)

    def _products(
        self, of_rows: Sequence[str], of_columns: Sequence[str], lengths: Sequence[int], step: int, i: str, states: list[str]
    ) -> list[str]:
        """The products with one row of `y`, added to what there is."""
        lines = self.lines
        beside = lines.integer("mul", i, step)
        rows = [self._read(lines.element(p, beside, self.is_single), n) for p, n in zip(of_columns, lengths, strict=True)]
        below = lines.integer("mul", i, self.x.column)
        found = []
        for r, place in enumerate(of_rows):
            factor = self._spread(lines.element(place, below, self.is_single))
            for k, row in enumerate(rows):
                own = f"{self.vector} {factor}, {self.vector} {row}, {self.vector} {states[r * len(rows) + k]}"
                found.append(lines.new(f"call {self.vector} @llvm.fma.{self.name}({own})"))
        return found

    def _place(self, matrix: Matrix, row: Any, column: Any) -> str:
        lines = self.lines
        steps = lines.integer("mul", row, matrix.row), lines.integer("mul", column, matrix.column)
        return lines.element(matrix.place, lines.integer("add", *steps), self.is_single)

    def _spread(self, place: str) -> str:
        number = self.lines.new(f"load {self.kind}, ptr {place}, align {self.item}")
        first = self.lines.new(f"insertelement {self.vector} undef, {self.kind} {number}, i64 0")
        return self.lines.new(f"shufflevector {self.vector} {first}, {self.vector} undef, <{self.lanes} x i32> zeroinitializer")

    def _mask(self, length: int) -> str:
        return f"<{self.lanes} x i1> <{', '.join(f'i1 {int(k < length)}' for k in range(self.lanes))}>"

    def _read(self, place: str, length: int) -> str:
        if length == self.lanes:
            return self.lines.new(f"load {self.vector}, ptr {place}, align {self.item}")
        called = f"@llvm.masked.load.{self.name}.p0"
        self.lines.declared.add(f"declare {self.vector} {called}(ptr, i32, <{self.lanes} x i1>, {self.vector})")
        parts = f"ptr {place}, i32 {self.item}, {self._mask(length)}, {self.vector} zeroinitializer"
        return self.lines.new(f"call {self.vector} {called}({parts})")

    def _store(self, value: str, place: str, length: int) -> None:
        if length == self.lanes:
            self.lines.do(f"store {self.vector} {value}, ptr {place}, align {self.item}")
            return
        called = f"@llvm.masked.store.{self.name}.p0"
        self.lines.declared.add(f"declare void {called}({self.vector}, ptr, i32, <{self.lanes} x i1>)")
        parts = f"{self.vector} {value}, ptr {place}, i32 {self.item}, {self._mask(length)}"
        self.lines.do(f"call void {called}({parts})")


def product_in_tiles(lines: Lines, x: Matrix, y: Matrix, z: Matrix, counts: tuple[int, int, int], is_single: bool) -> None:
    """Write the code of a product of so many rows, inner elements and columns."""
    _Tiles(lines, x, y, z, counts, is_single).all()
