"""What the subscripts of an einsum say: which labels each operand's dimensions have, and the result's.

Labels are numbers: 0 to 25 for A to Z, 26 to 51 for a to z, and from 52 on for the dimensions that ellipses cover, which are
aligned at the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.errors import ShapeError

__all__ = ["Labels", "joint_sizes", "label_operands", "parse_equation", "parse_sublists"]

Labels = tuple[int, ...]
Term = list[Any]  # labels, and perhaps one Ellipsis

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # `string` takes a millisecond to import
_ELLIPSES = len(_LETTERS)  # the first label of a dimension that an ellipsis covers


def parse_equation(equation: str) -> tuple[list[Term], Term | None]:
    """The terms of an equation, and the result's if there is an arrow.

    Raises
    ------
    RuntimeError
        If a character means nothing.
    """
    arrow = equation.find("->")
    left = equation if arrow < 0 else equation[:arrow]
    terms = []
    start = 0
    for number, text in enumerate(left.split(",")):
        terms.append(_parse_term(text, start, f"for operand {number}"))
        start += len(text) + 1
    if arrow < 0:
        return terms, None
    return terms, _parse_term(equation[arrow + 2 :], arrow + 2, "for the output")


def _parse_term(text: str, start: int, where: str) -> Term:
    term: Term = []
    at = 0
    while at < len(text):
        if text[at] == ".":
            if Ellipsis in term:
                raise ShapeError(f"einsum(): found '.' {where} for which an ellipsis was already found")
            if text[at : at + 3] != "...":
                raise ShapeError(f"einsum(): found '.' {where} that is not part of any ellipsis")
            term.append(Ellipsis)
            at += 3
            continue
        if text[at] != " ":
            label = _LETTERS.find(text[at])
            if label < 0:
                raise ShapeError(
                    f"einsum(): invalid subscript given at index {start + at} in the equation string, subscripts must be in "
                    "[a-zA-Z]"
                )
            term.append(label)
        at += 1
    return term


def parse_sublists(arguments: Sequence[Any]) -> tuple[list[Any], list[Term], Term | None]:
    """Operands, terms and the result's term of ``operand, sublist, operand, sublist, ..., [sublist]``.

    Raises
    ------
    ValueError
        If a subscript is not in [0, 52).
    TypeError
        If a sublist is none.
    """
    pairs = len(arguments) // 2
    operands = [arguments[2 * k] for k in range(pairs)]
    terms = [_check_sublist(arguments[2 * k + 1]) for k in range(pairs)]
    return operands, terms, _check_sublist(arguments[-1]) if len(arguments) % 2 else None


def _check_sublist(sublist: Any) -> Term:
    if not isinstance(sublist, (list, tuple)):
        raise TypeError(f"einsum(): expected a list of subscripts after each operand, but got {type(sublist).__name__}")
    for label in sublist:
        if label is Ellipsis:
            continue
        if not isinstance(label, int):
            raise TypeError(f"einsum(): subscripts in a subscript list are integers or Ellipsis, not {type(label).__name__}")
        if not 0 <= label < _ELLIPSES:
            raise ValueError(
                f"einsum(): subscript in subscript list is not within the valid range [0, {_ELLIPSES}), but {label} was given"
            )
    if list(sublist).count(Ellipsis) > 1:
        raise ShapeError("einsum(): a subscript list has more than one ellipsis")
    return list(sublist)


def label_operands(terms: Sequence[Term], output: Term | None, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """A label for every dimension of every operand, and those of the result.

    Parameters
    ----------
    terms, output
        As parsed.
    ranks : sequence of int
        Numbers of dimensions of the operands.

    Raises
    ------
    RuntimeError
        If terms and operands do not go together.
    """
    if len(terms) != len(ranks):
        word = "fewer" if len(terms) > len(ranks) else "more"
        raise ShapeError(f"einsum(): {word} operands were provided than specified in the equation")
    widths = []
    for number, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        named = len(term) - term.count(Ellipsis)
        if named > rank and Ellipsis in term:
            raise ShapeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions ({rank}) "
                f"for operand {number}"
            )
        if named != rank and Ellipsis not in term:
            raise ShapeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({rank}) for operand {number} and no ellipsis was given"
            )
        widths.append(rank - named)
    most = max((w for w, term in zip(widths, terms, strict=True) if Ellipsis in term), default=0)
    labels = [_expand(term, width, most) for term, width in zip(terms, widths, strict=True)]
    everywhere = [label for operand in labels for label in operand]
    if output is None:
        covered = tuple(range(_ELLIPSES, _ELLIPSES + most))
        return labels, covered + tuple(sorted(k for k in set(everywhere) if k < _ELLIPSES and everywhere.count(k) == 1))
    result = _expand(output, most, most)
    for label in result:
        if result.count(label) > 1:
            raise ShapeError(f"einsum(): output subscript {_LETTERS[label]} appears more than once in the output")
        if label < _ELLIPSES and label not in everywhere:
            raise ShapeError(f"einsum(): output subscript {_LETTERS[label]} does not appear in the equation for any input operand")
    return labels, result


def _expand(term: Term, width: int, most: int) -> Labels:
    labels: list[int] = []
    for label in term:
        if label is Ellipsis:
            labels += range(_ELLIPSES + most - width, _ELLIPSES + most)
        else:
            labels.append(label)
    return tuple(labels)


def joint_sizes(labels: Sequence[Labels], shapes: Sequence[tuple[int, ...]]) -> dict[int, int]:
    """The size of each label, to which sizes of one are broadcast.

    Raises
    ------
    RuntimeError
        If the sizes of a label differ.
    """
    found: dict[int, int] = {}
    for number, (operand, shape) in enumerate(zip(labels, shapes, strict=True)):
        own: dict[int, int] = {}
        for label, extent in zip(operand, shape, strict=True):
            if own.setdefault(label, extent) != extent:
                raise ShapeError(
                    f"einsum(): subscript {_LETTERS[label]} is repeated for operand {number} but the sizes don't match, "
                    f"{extent} != {own[label]}"
                )
            before = found.setdefault(label, extent)
            if before == 1:
                found[label] = extent
            elif extent not in (1, before):
                raise ShapeError(_mismatch(label, number, extent, before))
    return found


def _mismatch(label: int, operand: int, extent: int, before: int) -> str:
    if label < _ELLIPSES:
        return (
            f"einsum(): subscript {_LETTERS[label]} has size {extent} for operand {operand} which does not broadcast with "
            f"previously seen size {before}"
        )
    return (
        f"einsum(): dimension {label - _ELLIPSES} covered by ellipsis in operand {operand} has size {extent} which does not "
        f"broadcast with previously seen ellipsis with size {before} for the respective dimension"
    )
