"""Random statements with containers, exceptions, returns from the middle, and what else there is in programs."""

from __future__ import annotations

from program_expressions import Scope
from program_statements import Statements


class Containers(Statements):
    """Statements that make a container, use it and leave a number or an array behind."""

    def _made(self, scope: Scope, text: str) -> list[str]:
        name = self.name("s")
        scope.floats.append(name)
        return [f"{name} = {text}"]

    def caught(self, scope: Scope) -> list[str]:
        """An exception that is caught."""
        inner, name = scope.inside(), self.name("s")
        lines = [f"{name} = 0.0", "try:", *self.indented(self.block(inner, 1))]
        lines += [f"    if {self.truth(inner)}:", "        raise ValueError('stop')", f"    {name} = {self.number(inner)} * 1.0"]
        lines += ["except Exception:", f"    {name} = {self.number(scope)} * 1.0"]
        scope.floats.append(name)
        return lines

    def early(self, scope: Scope) -> list[str]:
        """A return from the middle."""
        if scope.inner and self.chance(0.5):
            return self.branch(scope)
        return [f"if {self.truth(scope)}:", *self.indented(self.block(scope.inside(), 1)), f"    {self.returned(scope)}"]

    def returned(self, scope: Scope) -> str:
        """A result."""
        return f"return ({self.number(scope)}) * 1.0"

    def list_used(self, scope: Scope) -> list[str]:
        """A list of numbers."""
        items, i = self.name("l"), self.name("i")
        inner = scope.inside(loop=True)
        inner.ints.append(i)
        start = self.pick([f"{items} = []", f"{items} = [1.0, 2.0]", f"{items} = [0.0] * 2", f"{items} = List()",
                           f"{items} = [{self.number(scope, 1)} * 1.0]"])  # fmt: skip
        lines = [start, f"for {i} in range(3):", f"    {items}.append({self.number(inner)} * 1.0)"]
        changes = [f"{items}[1] = {self.number(scope)} * 1.0", f"{items}[0] += {self.number(scope, 1)}", f"{items}.reverse()",
                   f"{items}.insert(1, {self.number(scope, 1)} * 1.0)", f"{items}.pop()",
                   f"{items}.extend({items}[:2])"]  # fmt: skip
        if "List" not in start:
            changes += [f"{items}.sort()", f"{items}[1], {items}[2] = {items}[2], {items}[1]", f"{items} = {items}[::-1]"]
        lines += [self.pick(changes) for _ in range(int(self.rng.integers(3)))]
        ends = [f"{items}[0] * {items}[-1]", f"sum({items})", f"max({items}) - min({items})", f"len({items}) * {items}[1]"]
        if "List" not in start:
            ends += [
                f"np.array({items}).sum()",
                f"sum([t * t for t in {items}])",
                f"sum(sorted({items})[:2])",
                f"(np.array({items}) ** 2).max()",
            ]
        return lines + self._made(scope, self.pick(ends))

    def dict_used(self, scope: Scope) -> list[str]:
        """A dictionary of numbers."""
        table, i, t = self.name("d"), self.name("i"), self.name("t")
        inner = scope.inside(loop=True)
        inner.ints.append(i)
        start = self.pick([f"{table} = {{}}", f"{table} = {{0: {self.number(scope, 1)} * 1.0}}", f"{table} = dict()",
                           f"{table} = Dict.empty(numba.int64, numba.float64)"])  # fmt: skip
        lines = [
            start,
            f"for {i} in range(3):",
            f"    {table}[{self.pick([i, i + ' % 2', i + ' * 2'])}] = {self.number(inner)} * 1.0",
        ]
        if self.chance(0.5):
            lines.append(f"{table}[0] {self.pick(['=', '+=', '*='])} {self.number(scope, 1)} * 1.0")
        name = self.name("s")
        scope.floats.append(name)
        lines.append(f"{name} = {table}[0]")
        lines += self.pick([
            [f"for {t} in {table}.values():", f"    {name} = {name} * 0.5 + {t} * {t}"],
            [f"for {i}, {t} in {table}.items():", f"    {name} += {t} * {i}"],
            [f"for {i} in {table}:", f"    {name} -= {table}[{i}] * 0.5"],
            [f"if 1 in {table}:", f"    {name} += {table}[1]"],
            [f"{name} += {table}.get(7, 0.5) * {table}[0]"],
            [f"{name} += {table}.pop(0) + len({table})"],
        ])  # fmt: skip
        return lines

    def arrays_listed(self, scope: Scope) -> list[str]:
        """A list or tuple of arrays, which are written into through it."""
        vectors = [n for n in self._written(scope, 1) if n[0] == "w"]
        if len(vectors) < 1:
            return self.new_array(scope)
        a = self.pick(vectors)
        same = [n for n in vectors if scope.arrays[n] == scope.arrays[a]]
        b, items, n = self.pick(same), self.name("l"), scope.arrays[a][0]
        opened, closed = self.pick([("[", "]"), ("(", ")")])
        lines = [f"{items} = {opened}{a}, {b}.copy(), {b}{closed}"]
        k = self.pick(["0", "1", "2", "-1"])
        lines.append(f"{items}[{k}][{self.index(scope, n)}] {self.pick(['=', '+='])} {self.number(scope, 1)}")
        if opened == "[" and self.chance(0.5):
            lines.append(f"{items}[{self.pick(['0', '1'])}] = {items}[{self.pick(['1', '2'])}] * 2.0")
        v = self.name("v")
        inner = scope.inside(loop=True)
        inner.arrays[v] = scope.arrays[a]
        lines += [f"for {v} in {items}:", *self.indented(self.block(inner, 1))]
        return lines + self._made(scope, f"{items}[0].sum() * {items}[{self.pick(['1', '2'])}][{self.index(scope, n)}]")

    def nested_lists(self, scope: Scope) -> list[str]:
        """A list of lists."""
        if not scope.arrays:
            return self.tuple_used(scope)
        a = self.pick(list(scope.arrays))
        rows, i, j = self.name("l"), self.name("i"), self.name("i")
        inner = scope.inside(loop=True)
        inner.ints += [i, j]
        lines = [f"{rows} = [[{a}.flat[({i} + {j}) % {a}.size] * {self.number(inner, 0)} for {j} in range(2)] for {i} in range(3)]"]
        lines.append(f"{rows}[1][0] {self.pick(['=', '+='])} {self.number(scope, 1)} * 1.0")
        if self.chance(0.5):
            lines.append(f"{rows}[0] = {rows}[{self.pick(['1', '2'])}]")
            lines.append(f"{rows}[0][1] = {self.number(scope, 1)} * 1.0")
        return lines + self._made(scope, f"{rows}[0][0] * {rows}[1][1] + sum({rows}[2])")

    def tuple_used(self, scope: Scope) -> list[str]:
        """A tuple of numbers, of which some may be constants."""
        t, v = self.name("t"), self.name("t")
        items = [
            f"{self.number(scope)} * 1.0",
            self.pick(["1.0", "0.5", f"{self.number(scope, 0)} * 1.0"]),
            f"{self.number(scope, 1)} * 1.0",
        ]
        lines = [f"{t} = ({', '.join(items)})"]
        name = self.name("s")
        scope.floats.append(name)
        lines.append(f"{name} = {t}[0] - {t}[-1]")
        lines += self.pick([
            [f"for {v} in {t}:", f"    {name} += {v} * {v}"],
            [f"for {v} in {t} + {t}[1:]:", f"    {name} = {name} * 0.5 + {v}"],
            [f"for {v} in range(3):", f"    {name} += {t}[{v}] * {v}"],
            [f"{name} += max({t}) * min({t}) + sum({t})"],
            [f"a_{v}, b_{v} = {t}[1:]", f"{name} += a_{v} * b_{v}"],
        ])  # fmt: skip
        return lines

    def named(self, scope: Scope) -> list[str]:
        """A named tuple."""
        p = self.name("p")
        lines = [f"{p} = Pair({self.number(scope)} * 1.0, {self.pick(['2.0', self.number(scope, 1) + ' * 1.0'])})"]
        if self.chance(0.5):
            lines.append(f"{p} = Pair({p}.second * 1.0, {p}.first * 0.5)")
        return lines + self._made(scope, f"{p}.first * {p}[1] - {p}.second")

    def unrolled(self, scope: Scope) -> list[str]:
        """A tuple of different things, taken one after the other."""
        v, name = self.name("t"), self.name("s")
        found = self.arrays_of(scope, 1)
        items = [f"{self.number(scope, 1)} * 1.0", "2", "1.5"]
        line = f"    {name} = {name} * 0.5 + np.sin({v})"
        if found and self.chance(0.5):
            items, line = [self.pick(found), *self.arrays_of(scope, 2)[:1], self.pick(found)], f"    {name} += weighted({v})"
        scope.floats.append(name)
        return [f"{name} = 0.0", f"for {v} in literal_unroll(({', '.join(items)})):", line]

    def indices_used(self, scope: Scope) -> list[str]:
        """An array of integers that is made, written and used to index."""
        found = self._written(scope, 1)
        if not found:
            return self.new_array(scope)
        a, k = self.pick(found), self.name("k")
        n = scope.arrays[a][0]
        scope.indices[k] = (n,)
        lines = [
            self.pick(
                [
                    f"{k} = np.argsort({a})",
                    f"{k} = np.arange({n})",
                    f"{k} = np.zeros({n}, np.int64)",
                    f"{k} = np.arange({n})[::-1].copy()",
                ]
            )
        ]
        lines.append(f"{k}[{self.index(scope, n)}] = {self.integer(scope)} % {n}")
        name = self.name("w")
        scope.arrays[name] = (n,)
        return [*lines, f"{name} = {a}[{k}]"]

    def set_used(self, scope: Scope) -> list[str]:
        """A set of integers."""
        t, i = self.name("t"), self.name("i")
        lines = [f"{t} = set()", f"for {i} in range(4):", f"    {t}.add({i} % {self.pick([2, 3])} + {self.integer(scope)} % 2)"]
        lines += [f"{i} = 0", f"if 1 in {t}:", f"    {i} = len({t})"]
        scope.ints.append(i)
        return lines

    def generator_used(self, scope: Scope) -> list[str]:
        """Values of a generator, while the array changes that they come from."""
        found = self._written(scope, 1)
        if not found:
            return self.new_array(scope)
        a, v = self.pick(found), self.name("t")
        inner = scope.inside(loop=True)
        inner.floats.append(v)
        lines = [f"for {v} in items_of({a}):", *self.indented(self.block(inner, 1))]
        if self.chance(0.4):
            lines.append(f"    {a}[{self.index(scope, scope.arrays[a][0])}] = {v} * 0.5")
        return lines

    def optional(self, scope: Scope) -> list[str]:
        """A number that may be None."""
        v, name = self.name("o"), self.name("s")
        lines = [f"{v} = None", f"if {self.truth(scope)}:", f"    {v} = {self.number(scope)} * 1.0"]
        lines += [f"{name} = {self.number(scope, 1)} * 1.0 if {v} is None else {v} * 0.5"]
        scope.floats.append(name)
        return lines
