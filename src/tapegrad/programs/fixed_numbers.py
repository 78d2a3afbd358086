"""Numbers of Python's that meet float32: they belong to the key by their values, as integers do.

A recording has numbers of float64 in the places of those among the arguments, which have a say in the dtype of what is computed
with them. Given as they are they have none, but then they are the same in each run.
"""

from __future__ import annotations

from typing import Any

from tapegrad.programs.keys import describe

__all__ = ["FixedNumbers", "has_fixed_numbers", "with_numbers"]

MOST_NUMBERS = 8  # so many paths for one key, until the function is called: they may change at each call


class FixedNumbers(tuple[str, ...]):
    """The numbers, digit by digit."""

    __slots__ = ()


def with_numbers(
    key: tuple[Any, ...], args: Any, kwargs: Any, values: list[Any], known: set[FixedNumbers]
) -> tuple[tuple[Any, ...], list[Any]]:
    """A key with the numbers that nothing is differentiated by, and inputs without them; as they were if there have been too many.

    Parameters
    ----------
    key : tuple
    args, kwargs
        Of the call.
    values : list
        Of all inputs.
    known : set of FixedNumbers
        Those that there have been.
    """
    argnums, (parts, *rest) = key
    numbers: list[str] = []
    inputs: list[Any] = []
    count = 0
    for k, value in enumerate((*args, kwargs)):
        found: list[Any] = []
        describe(value, [], found, [], k in argnums)
        count += len(found)
        is_fixed = k not in argnums
        numbers += [x.hex() for x in found if is_fixed and type(x) is float]
        inputs += [x for x in found if not is_fixed or type(x) is not float]
    own = FixedNumbers(numbers)
    if own not in known:
        if len(known) >= MOST_NUMBERS:
            return key, values
        known.add(own)
    return (argnums, ((*parts, own), *rest)), [*inputs, *values[count:]]


def has_fixed_numbers(key: tuple[Any, ...]) -> bool:
    """Whether a key is one with numbers."""
    return type(key[1][0][-1]) is FixedNumbers
