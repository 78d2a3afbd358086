"""The vector space that a value is of: its zeros, its basis, its inner product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from tapegrad.as_autograd.tracing import getval
from tapegrad.drivers.containers import Structure, flatten, flatten_like, restore
from tapegrad.drivers.derivatives import joined

__all__ = ["ArrayVSpace", "ComplexArrayVSpace", "ContainerVSpace", "SparseObject", "VSpace", "vspace"]


class VSpace:
    """Base class: what is done with the vectors of a space.

    Parameters
    ----------
    value : object
        One of the vectors.
    """

    mappings: ClassVar[dict[type, Callable[[Any], VSpace]]] = {}
    iscomplex = False
    size: int
    shape: Any

    def __init__(self, value: Any) -> None:
        pass

    def zeros(self) -> Any:
        """The zero."""
        raise NotImplementedError(f"{type(self).__name__} has no zeros")

    def ones(self) -> Any:
        """The sum of the basis."""
        raise NotImplementedError(f"{type(self).__name__} has no ones")

    def standard_basis(self) -> Iterator[Any]:
        """The unit vectors, one after the other."""
        raise NotImplementedError(f"{type(self).__name__} has no basis")

    def randn(self) -> Any:
        """A random vector."""
        raise NotImplementedError(f"{type(self).__name__} has no random vectors")

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two vectors."""
        return self._add(x, y)

    def mut_add(self, x: Any, y: Any) -> Any:
        """The sum, which may be written into the first."""
        return self._add(self.zeros() if x is None else x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """A multiple of a vector."""
        return self._scalar_mul(x, a)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The inner product."""
        return self._inner_prod(x, y)

    def covector(self, x: Any) -> Any:
        """The linear form that a vector stands for."""
        return self._covector(x)

    def flattened(self, x: Any) -> np.ndarray:
        """The numbers of a vector, one after the other."""
        return joined([x])

    def _add(self, x: Any, y: Any) -> Any:
        return x + y

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return x * a

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return np.dot(np.ravel(x), np.ravel(y))

    def _covector(self, x: Any) -> Any:
        return x

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{vars(self)}"

    @classmethod
    def register(cls, value_type: type, vspace_maker: Callable[[Any], VSpace] | None = None) -> None:
        """Make this the space of all values of a type."""
        VSpace.mappings[value_type] = vspace_maker or cls


class ArrayVSpace(VSpace):
    """Real arrays of one shape and dtype; numbers among them."""

    def __init__(self, value: Any) -> None:
        array = np.asarray(value)
        self.shape, self.dtype = array.shape, array.dtype

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of dimensions of the space."""
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        """Number of dimensions of the arrays."""
        return len(self.shape)

    def zeros(self) -> Any:
        """The zero."""
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        """The sum of the basis."""
        return np.full(self.shape, sum(self._units()), self.dtype)

    def _units(self) -> tuple[Any, ...]:
        return (1.0,)

    def standard_basis(self) -> Iterator[Any]:
        """The unit vectors, one after the other."""
        for place in np.ndindex(*self.shape):
            for unit in self._units():
                vector = self.zeros()
                vector[place] = unit
                yield vector

    def randn(self) -> Any:
        """A random vector."""
        return np.asarray(sum(unit * np.asarray(np.random.randn(*self.shape)) for unit in self._units())).astype(self.dtype)  # noqa: NPY002


class ComplexArrayVSpace(ArrayVSpace):
    """Complex arrays of one shape and dtype, as a space over the real numbers."""

    iscomplex = True

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of dimensions of the space."""
        return 2 * int(np.prod(self.shape))

    def _units(self) -> tuple[Any, ...]:
        return 1.0, 1.0j

    def flattened(self, x: Any) -> np.ndarray:
        """The real parts, and then the imaginary ones."""
        return joined([np.real(x), np.imag(x)])

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return np.real(np.vdot(x, y))

    def _covector(self, x: Any) -> Any:
        return np.conj(x)


class ContainerVSpace(VSpace):
    """Lists, tuples, dicts and named tuples, in each other, of vectors."""

    def __init__(self, value: Any) -> None:
        self.shape = value
        leaves: list[Any] = []
        self._structure: Structure = flatten(value, leaves)
        self._spaces = [vspace(leaf) for leaf in leaves]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, ContainerVSpace):
            return False
        return _skeleton(self._structure) == _skeleton(other._structure) and self._spaces == other._spaces

    __hash__ = None

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of dimensions of the space."""
        return sum(space.size for space in self._spaces)

    def _parts(self, x: Any) -> list[Any]:
        found: list[Any] = []
        flatten_like(self._structure, x, found, "a vector")
        return found

    def _made(self, parts: Any) -> Any:
        return restore(self._structure, iter(parts))

    def zeros(self) -> Any:
        """The zero."""
        return self._made([space.zeros() for space in self._spaces])

    def ones(self) -> Any:
        """The sum of the basis."""
        return self._made([space.ones() for space in self._spaces])

    def randn(self) -> Any:
        """A random vector."""
        return self._made([space.randn() for space in self._spaces])

    def standard_basis(self) -> Iterator[Any]:
        """The unit vectors, one after the other."""
        for k, space in enumerate(self._spaces):
            for unit in space.standard_basis():
                yield self._made([unit if k == i else other.zeros() for i, other in enumerate(self._spaces)])

    def flattened(self, x: Any) -> np.ndarray:
        """The numbers of a vector, one after the other."""
        return joined(self._parts(x))

    def _add(self, x: Any, y: Any) -> Any:
        return self._made([space.add(a, b) for space, a, b in zip(self._spaces, self._parts(x), self._parts(y), strict=True)])

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return self._made([space.scalar_mul(part, a) for space, part in zip(self._spaces, self._parts(x), strict=True)])

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return sum(space.inner_prod(a, b) for space, a, b in zip(self._spaces, self._parts(x), self._parts(y), strict=True))

    def _covector(self, x: Any) -> Any:
        return self._made([space.covector(part) for space, part in zip(self._spaces, self._parts(x), strict=True)])


def _skeleton(structure: Structure) -> Any:
    return structure and (type(structure.like), structure.keys, tuple(map(_skeleton, structure.children)))


def _of_array(value: Any) -> VSpace:
    return ComplexArrayVSpace(value) if np.iscomplexobj(value) else ArrayVSpace(value)


VSpace.register(np.ndarray, _of_array)
for _real in (float, np.longdouble, np.float64, np.float32, np.float16):
    ArrayVSpace.register(_real)
for _complex in (complex, np.clongdouble, np.complex64, np.complex128):
    ComplexArrayVSpace.register(_complex)
for _container in (list, tuple, dict):
    ContainerVSpace.register(_container)


class SparseObject:
    """A vector that is added to another one by a function, as a primitive's derivative may give it."""

    def __init__(self, vs: VSpace, mut_add: Callable[[Any], Any]) -> None:
        self.vs, self.mut_add = vs, mut_add


VSpace.register(SparseObject, lambda x: x.vs)


def vspace(value: Any) -> VSpace:
    """The space that a value is of.

    Raises
    ------
    TypeError
        If it is no vector.
    """
    value = getval(value)
    maker = VSpace.mappings.get(type(value))
    if maker is None and isinstance(value, tuple) and hasattr(value, "_fields"):
        maker = ContainerVSpace
    if maker is None:
        known = ", ".join(kind.__name__ for kind in VSpace.mappings)
        raise TypeError(f"Can't find vector space for value {value!r} of type {type(value).__name__}. Valid types are {known}")
    return maker(value)
