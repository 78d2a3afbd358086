"""What tests compile with is as llvmlite and Numba have it."""

from __future__ import annotations

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from llvmlite import ir
from quicker_llvm import TEXTS, patch_llvm
from quicker_numba import patch_numba

REAL, INTEGER, TRUTH = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
PAIR = ir.LiteralStructType([REAL, INTEGER])


def module() -> ir.Module:
    """With an instruction of every kind that is written here."""
    made = ir.Module("made")
    function = ir.Function(made, ir.FunctionType(INTEGER, [PAIR.as_pointer(), INTEGER, REAL]), 'a "quoted" name')
    place, number, real = function.args
    builder = ir.IRBuilder(function.append_basic_block("first"))
    one, other = function.append_basic_block("one block"), function.append_basic_block("other")
    builder.store(builder.insert_value(builder.load(place, align=8), real, 0), place, align=8)
    item = builder.gep(place, [INTEGER(0), ir.IntType(32)(1)], inbounds=True)
    builder.store(builder.extract_value(builder.load(place), 1, name='\\ "item"'), item)
    builder.load(builder.gep(place, [number])).set_metadata("own", made.add_metadata([INTEGER(1)]))
    less = builder.fcmp_ordered("<", real, builder.sitofp(number, REAL), flags=["nnan", "ninf"])
    builder.cbranch(builder.and_(less, builder.icmp_signed("==", number, INTEGER(3))), one, other).set_weights([1, 99])
    builder.position_at_end(one)
    builder.branch(other)
    builder.position_at_end(other)
    builder.ret(builder.zext(TRUTH(True), INTEGER))
    assert {type(line) for block in function.blocks for line in block.instructions} >= set(TEXTS)
    return made


def test_text_says_what_that_of_llvmlite_says() -> None:
    expected = str(llvm.parse_assembly(str(module())))
    with pytest.MonkeyPatch.context() as patch:
        patch_llvm(patch.setattr)
        text = str(module())
    assert "{double, i64}*" not in text
    assert str(llvm.parse_assembly(text)) == expected


def optimised(function: object) -> list[str]:
    """The code of a function without names, which are counted."""
    made = numba.njit(function)
    made(np.ones(3), (np.ones(2), 1.0))
    (code,) = made.inspect_llvm().values()
    words = [word.split() for word in code.splitlines() if word.startswith("  ") and "@" not in word]
    return [word[2] if len(word) > 2 and word[1] == "=" else word[0] for word in words]


def test_code_of_the_optimiser_is_that_of_numba() -> None:
    def function(x, pair):  # type: ignore[no-untyped-def]
        kept, last = [pair[0], x[1:]], x
        for k in range(x.size):
            last = x[k:] * pair[1]
            kept.append(last)
        return last.sum() + kept[0][0]

    expected = optimised(function)
    with pytest.MonkeyPatch.context() as patch:
        patch_numba(patch.setattr)
        assert optimised(function) == expected
