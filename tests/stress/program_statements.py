"""Random statements: writes, views, loops, branches, containers, exceptions."""

from __future__ import annotations

import math
from collections.abc import Callable

from program_expressions import Expressions, Scope, Shape

OPERATORS = ["+=", "-=", "*=", "+=", "/="]


class Statements(Expressions):
    """Makes statements; a body is a list of lines."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.procedures: list[tuple[str, list[Shape]]] = []  # helpers that write into arrays
        self.sizes: list[int] = [5]

    def block(self, scope: Scope, count: int) -> list[str]:
        """Some statements."""
        lines: list[str] = []
        floats, arrays = len(scope.floats), len(scope.arrays)
        for _ in range(count):
            lines += self.statement(scope)
        if scope.depth and self.chance(0.8):  # what a block makes is not known after it, so its values are added up
            used = [*scope.floats[floats:][-2:], *(f"weighted({a})" for a in list(scope.arrays)[arrays:][-2:])]
            lines.append(f"acc = acc * 0.5 + {' - '.join(used)}" if used else f"acc += {self.number(scope, 1)}")
        return lines

    def statement(self, scope: Scope) -> list[str]:
        """One statement, which may consist of several lines."""
        simple: list[Callable[[Scope], list[str]]] = [
            self.assigned, self.assigned, self.updated, self.updated, self.element, self.element, self.slice_written,
            self.slice_written,
            self.new_array, self.new_array, self.view_bound, self.view_bound, self.in_place, self.overlapping, self.swapped,
            self.fancy, self.masked, self.unpacked, self.counted, self.result_given, self.called, self.whole_updated,
        ]  # fmt: skip
        nested: list[Callable[[Scope], list[str]]] = [
            self.branch, self.branch, self.loop, self.loop, self.while_loop, self.items_loop, self.items_loop, self.caught,
            self.early,
            self.list_used, self.dict_used, self.arrays_listed, self.tuple_used, self.indices_used, self.matrix_loop,
            self.nested_lists, self.set_used, self.named, self.unrolled, self.generator_used, self.optional,
        ]  # fmt: skip
        if scope.depth < 2 and self.chance(0.45):
            return list(self.pick(nested)(scope))
        return list(self.pick(simple)(scope))

    def _own(self, scope: Scope) -> list[str]:
        return [n for n in scope.floats if n not in scope.fixed]

    def assigned(self, scope: Scope) -> list[str]:
        """A new number, or another value of one."""
        own = self._own(scope)
        text = f"({self.number(scope)}) * 1.0"
        if own and self.chance(0.5):
            return [f"{self.pick(own)} = {text}"]
        name = self.name("s")
        scope.floats.append(name)
        return [f"{name} = {text}"]

    def updated(self, scope: Scope) -> list[str]:
        """A number that is updated."""
        own = self._own(scope)
        if not own:
            return self.assigned(scope)
        name, op = self.pick(own), self.pick(OPERATORS)
        if op == "*=":
            return [f"{name} *= np.cos({self.number(scope, 1)})"]
        return [f"{name} {op} {'1.5 + abs(' + self.number(scope, 1) + ')' if op == '/=' else self.number(scope, 2)}"]

    def _written(self, scope: Scope, ndim: int | None = None) -> list[str]:
        return [n for n in self.arrays_of(scope, ndim) if n not in scope.fixed]

    def element(self, scope: Scope) -> list[str]:
        """A write of one item."""
        found = self._written(scope)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        place = f"{a}[{self.place(scope, scope.arrays[a])}]"
        if self.chance(0.15):
            place = f"{a}.flat[{int(self.rng.integers(math.prod(scope.arrays[a])))}]"
            return [f"{place} = {self.number(scope)}"]
        if self.chance(0.4):
            return [f"{place} {self.pick(['+=', '-='])} {self.number(scope)}"]
        if self.chance(0.15):
            other = f"{a}[{self.place(scope, scope.arrays[a])}]"
            return [f"{place}, {other} = {other}, {place}"]
        return [f"{place} = {self.number(scope)}"]

    def slice_written(self, scope: Scope) -> list[str]:
        """A write of a part."""
        found = self._written(scope)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        shape = scope.arrays[a]
        n = shape[0]
        if len(shape) == 1:
            k = int(self.rng.integers(1, n + 1))
            start = int(self.rng.integers(0, n - k + 1))
            target = self.pick([f"{a}[{start}:{start + k}]", f"{a}[{start - n}:][:{k}]", f"{a}[::-1][{start}:{start + k}]"])
            if n >= 2 * k and self.chance(0.3):
                target = f"{a}[::2][:{k}]"
            part: Shape = (k,)
        else:
            target, part = self.pick([
                (f"{a}[{self.index(scope, n)}]", shape[1:]), (f"{a}[:, {self.index(scope, shape[1])}]", (n, *shape[2:])),
                (f"{a}[...]", shape), (f"{a}[:]", shape), (f"{a}[1:]", (n - 1, *shape[1:])),
            ])  # fmt: skip
        if self.chance(0.25) or not math.prod(part):
            return [f"{target} = {self.number(scope, 1)}"]
        if len(part) == 3:
            return [f"{target} = {a} * 0.5" if part == shape else f"{target} = {self.number(scope, 1)}"]
        return [f"{target} {self.pick(['=', '=', '+=', '*=', '-='])} {self.array(scope, part)}"]

    def overlapping(self, scope: Scope) -> list[str]:
        """A part of an array moved within it."""
        found = self._written(scope)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        forms = ["{0}[1:] = {0}[:-1]", "{0}[:-1] = {0}[1:]", "{0}[1:] = {0}[:-1] * 2", "{0}[:] = {0}[::-1]", "{0}[1:] += {0}[:-1]",
                 "{0}[:-1] -= {0}[1:] * 0.5", "{0}[1:] *= np.cos({0}[:-1])", "{0}[::-1][1:] = {0}[1:]"]  # fmt: skip
        if len(scope.arrays[a]) == 2 and scope.arrays[a][0] == scope.arrays[a][1]:
            forms += ["{0}[:] = {0}.T", "{0}[:] = {0} + {0}.T", "{0}[0] = {0}[:, 0]"]
        return [self.pick(forms).format(a)]

    def in_place(self, scope: Scope) -> list[str]:
        """An operator on a whole array."""
        found = self._written(scope)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        shape = scope.arrays[a]
        if self.chance(0.4) or len(shape) == 3:
            return [f"{a} {self.pick(['+=', '*=', '-='])} {self.number(scope, 1)}"]
        return [f"{a} {self.pick(['+=', '*=', '-='])} {self.array(scope, shape)}"]

    def whole_updated(self, scope: Scope) -> list[str]:
        """A name gets another array of its shape."""
        found = [n for n in self._written(scope) if len(scope.arrays[n]) < 3 and n[0] == "w"]
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        same = [n for n in found if scope.arrays[n] == scope.arrays[a] and n != a]
        if same and self.chance(0.5):
            b = self.pick(same)
            return [f"{a}, {b} = {b}, {a}"]
        return [f"{a} = {self.array(scope, scope.arrays[a])} * 1.0"]

    def new_array(self, scope: Scope) -> list[str]:
        """A work array."""
        name, n = self.name("w"), self.pick(self.sizes)
        shape = self.pick([(n,), (n,), (n,), (3,), (2, 3), (3, 3), (2, n), (2, 2, 3)])
        scope_before = scope.inside()
        if self.chance(0.2):
            lines = [f"{name} = np.empty({shape})", f"{name}.fill({self.number(scope_before, 1)})"]
            if self.chance(0.5):
                lines[1] = f"{name}[:] = {self.number(scope_before, 1)}"
        elif len(shape) == 3 or self.chance(0.5):
            lines = [f"{name} = {self.fresh(scope_before, shape, 1)}"]
        else:
            lines = [f"{name} = {self.array(scope_before, shape)} + 0.0"]
        scope.arrays[name] = shape
        return lines

    def view_bound(self, scope: Scope) -> list[str]:
        """Another name of an array, or of a part."""
        found = list(scope.arrays)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        shape = scope.arrays[a]
        n, name = shape[0], self.name("v")
        forms: list[tuple[str, Shape]] = [(a, shape), (f"{a}[::-1]", shape), (f"{a}[1:]", (n - 1, *shape[1:])), (f"{a}[:]", shape)]
        forms += [(f"{a}[::2]", ((n + 1) // 2, *shape[1:])), (f"{a}[:-1]", (n - 1, *shape[1:]))]
        if len(shape) == 1:
            forms += [(f"{a}[1:4][::-1]", (min(3, n - 1),)), (f"{a}.T", shape), (f"np.flip({a})", shape)]
            if n % 2 == 0 and n > 2 and a[0] == "w":
                forms += [(f"{a}.copy().reshape(2, {n // 2})", (2, n // 2))]
            if n == 6 and a == "x":
                forms += [("np.ascontiguousarray(x).reshape(2, 3)", (2, 3)), ("np.ascontiguousarray(x).reshape((3, 2)).T", (2, 3))]
        if len(shape) == 2:
            forms += [(f"{a}.T", shape[::-1]), (f"{a}[{self.index(scope, n)}]", shape[1:]), (f"{a}[:, 1]", (n,)),
                      (f"{a}.T[1:]", (shape[1] - 1, n)), (f"{a}[1:, ::-1]", (n - 1, shape[1])), (f"{a}[:, ::2]", (n,
                      (shape[1] + 1) // 2)),
                      (f"np.transpose({a})", shape[::-1]), (f"{a}.ravel()", (math.prod(shape),))]  # fmt: skip
        if len(shape) == 3:
            forms += [
                (f"{a}[0]", shape[1:]),
                (f"{a}[:, 1, :]", (n, shape[2])),
                (f"{a}[..., 1]", shape[:2]),
                (f"{a}[1, ...]", shape[1:]),
            ]
        text, of = self.pick([form for form in forms if math.prod(form[1])])
        scope.arrays[name] = of
        if a in scope.fixed:
            scope.fixed.add(name)
        return [f"{name} = {text}"]

    def swapped(self, scope: Scope) -> list[str]:
        """Two numbers change places."""
        own = self._own(scope)
        if len(own) < 2:
            return self.assigned(scope)
        a, b = self.pick(own), self.pick(own)
        return [self.pick([f"{a}, {b} = {b}, {a}", f"{a}, {b} = {b} * 0.5, {a} + {b}"])]

    def unpacked(self, scope: Scope) -> list[str]:
        """Several names at once."""
        a, b = self.name("s"), self.name("s")
        line = f"{a}, {b} = {self.number(scope, 1)} * 1.0, {self.number(scope, 2)} * 1.0"
        scope.floats += [a, b]
        return [line]

    def counted(self, scope: Scope) -> list[str]:
        """An integer."""
        name = self.name("n")
        line = f"{name} = {self.integer(scope)}"
        scope.ints.append(name)
        return [line]

    def result_given(self, scope: Scope) -> list[str]:
        """A function of NumPy that is given its result."""
        found = self._written(scope, 1)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        b, c = (self.pick([n for n in scope.arrays if scope.arrays[n] == scope.arrays[a]]) for _ in range(2))
        return [self.pick([f"np.sin({b}, {a})", f"np.multiply({b}, {c}, {a})", f"np.add({b}, {c}, {a})", f"np.abs({b}, {a})",
                           f"np.subtract({b}, {c}, {a}[:])", f"np.maximum({b}, {c}, {a})"])]  # fmt: skip

    def called(self, scope: Scope) -> list[str]:
        """A helper that writes into arrays, and gives one of them or a number."""
        for name, shapes in self.procedures[::-1]:
            own = [[n for n in self._written(scope) if scope.arrays[n] == shape] for shape in shapes]
            if all(own) and self.chance(0.7):
                given = ", ".join(self.pick(names) for names in own)
                if self.chance(0.5):
                    made = self.name("v")
                    scope.arrays[made] = shapes[0]
                    return [f"{made} = {name}({given}, {self.number(scope, 1)} * 1.0)"]
                return [f"{name}({given}, {self.number(scope, 1)} * 1.0)"]
        return self.element(scope)

    def fancy(self, scope: Scope) -> list[str]:
        """Reads and writes by arrays of indices."""
        found = self._written(scope, 1)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        n = scope.arrays[a][0]
        index = f"np.array({[int(self.rng.integers(-n, n)) for _ in range(3)]})"
        distinct = f"np.array({[int(i) for i in self.rng.permutation(n)[: min(3, n)]]})"
        if self.chance(0.5) or n < 3:
            name = self.name("w")
            scope.arrays[name] = (3,)
            return [f"{name} = {a}[{index}]"]
        return [f"{a}[{distinct}] = {self.array(scope, (3,), 1)}"]

    def masked(self, scope: Scope) -> list[str]:
        """Writes and sums where a condition holds."""
        found = self._written(scope, 1)
        if not found:
            return self.new_array(scope)
        a = self.pick(found)
        b = self.pick([n for n in scope.arrays if scope.arrays[n] == scope.arrays[a]])
        mask = f"{b} {self.pick(['<', '>', '<=', '!='])} {self.number(scope, 0)}"
        if self.chance(0.5):
            return [f"{a}[{mask}] = {self.number(scope, 1)}"]
        name, flags = self.name("s"), self.name("m")
        scope.floats.append(name)
        return [f"{flags} = {mask}", f"{name} = ({a}[{flags}] ** 2).sum() + {flags}.sum() * 0.5"]

    # Blocks

    def indented(self, lines: list[str]) -> list[str]:
        """Lines of a block."""
        return [f"    {line}" for line in lines]

    def branch(self, scope: Scope) -> list[str]:
        """A choice, of which one side may make a constant."""
        name = self.name("s")
        lines = [f"if {self.truth(scope)}:", *self.indented(self.block(scope.inside(), 2))]
        lines.append(f"    {name} = {self.number(scope)} * 1.0")
        if self.chance(0.3):
            lines += [f"elif {self.truth(scope)}:", f"    {name} = {self.pick(['0.0', '1', '2.5'])}"]
        lines += ["else:", *(self.indented(self.block(scope.inside(), 1)) if self.chance(0.5) else [])]
        lines.append(f"    {name} = {self.pick(['1.0', '0', self.number(scope, 1) + ' * 1.0'])}")
        scope.floats.append(name)
        return lines

    def loop(self, scope: Scope) -> list[str]:
        """A loop over a range, with what may end it."""
        i = self.name("i")
        inner = scope.inside(loop=True)
        inner.ints.append(i)
        ranges = ["range(3)", "range(1, 4)", "range(4, 0, -1)", "range(0, 5, 2)", "numba.prange(3)", "[2, 0, 1]", "(1, 3)"]
        if scope.indices:
            ranges.append(f"{self.pick(list(scope.indices))}")
        lines = [f"for {i} in {self.pick(ranges)}:"]
        body = self.block(inner, 2)
        if self.chance(0.3):
            body += [f"if {self.truth(inner)}:", f"    {self.pick(['break', 'continue'])}", *self.block(inner, 1)]
            if self.chance(0.3):
                return [*lines, *self.indented(body), "else:", *self.indented(self.block(scope.inside(), 1))]
        return lines + self.indented(body)

    def while_loop(self, scope: Scope) -> list[str]:
        """A loop that values end."""
        k, v = self.name("n"), self.name("s")
        inner = scope.inside(loop=True)
        inner.ints.append(k)
        inner.floats.append(v)
        inner.fixed |= {v}
        lines = [f"{k}, {v} = 0, {self.number(scope)} * 1.0", f"while {k} < 4 and abs({v}) {self.pick(['>', '<', '!='])} 1.0:"]
        lines += self.indented([*self.block(inner, 1), f"{v} = {v} * 0.5 + np.tanh({self.number(inner, 1)})", f"{k} += 1"])
        scope.floats.append(v)
        return lines

    def items_loop(self, scope: Scope) -> list[str]:
        """A loop over items."""
        vectors = self.arrays_of(scope, 1)
        if not vectors:
            return self.loop(scope)
        a, b = self.pick(vectors), self.pick(vectors)
        i, v, u = self.name("i"), self.name("t"), self.name("t")
        inner = scope.inside(loop=True)
        inner.floats.append(v)
        heads = [f"for {v} in {a}:", f"for {i}, {v} in enumerate({a}):", f"for {v}, {u} in zip({a}, {b}):",
        f"for {v} in {a}[::-1]:",
                 f"for {v} in {a}[1:]:", f"for {i}, {v} in enumerate({a}[:3], 1):", f"for ({i},), {v} in np.ndenumerate({a}):",
                 f"for {v} in {a}.copy():", f"for {i}, ({v}, {u}) in enumerate(zip({a}, {b}[::-1])):"]  # fmt: skip
        head = self.pick(heads)
        if i in head:
            inner.ints.append(i)
        if u in head:
            inner.floats.append(u)
        body = self.block(inner, 2)
        if self.chance(0.2):
            body += [f"if {self.truth(inner)}:", "    break"]
        return [head, *self.indented(body)]

    def matrix_loop(self, scope: Scope) -> list[str]:
        """A loop over the rows or places of a matrix."""
        found = self.arrays_of(scope, 2)
        if not found:
            return self.new_array(scope)
        m = self.pick(found)
        rows, columns = scope.arrays[m]
        i, j, v = self.name("i"), self.name("i"), self.name("v")
        inner = scope.inside(loop=True)
        kind = self.rng.integers(5)
        if kind == 0:
            inner.arrays[v] = (columns,)
            if m in scope.fixed:
                inner.fixed.add(v)
            return [f"for {v} in {m}:", *self.indented(self.block(inner, 2))]
        inner.ints += [i, j]
        if kind == 1:
            return [f"for {i}, {j} in np.ndindex({m}.shape):", *self.indented(self.block(inner, 2))]
        inner.floats.append(v)
        if kind == 2:
            return [f"for ({i}, {j}), {v} in np.ndenumerate({m}):", *self.indented(self.block(inner, 2))]
        if kind == 3:
            inner.ints = inner.ints[:-2]
            return [f"for {v} in {m}.flat:", *self.indented(self.block(inner, 1))]
        head = [f"for {i} in range({rows}):", f"    for {j} in range({columns}):", f"        {v} = {m}[{i}, {j}]"]
        return [*head, *self.indented(self.indented(self.block(inner, 2)))]
