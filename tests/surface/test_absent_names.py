"""Names of PyTorch that are not here: asking for one says what to write, which is here."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

import tapegrad as tg
from tapegrad.absent_names import _BY_MODULE, advice

MODULES = [place for place in _BY_MODULE if place != "Tensor"]


@pytest.mark.parametrize("place", MODULES)
def test_absent_name_is_absent_and_says_what_to_write(place: str) -> None:
    module = importlib.import_module(place)
    for name, instead in advice(place).items():
        assert not hasattr(module, name)
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert str(caught.value) == f"module '{place}' has no attribute '{name}'; {instead}"


@pytest.mark.parametrize("place", _BY_MODULE)
def test_what_is_advised_is_there(place: str) -> None:
    for text in advice(place).values():
        for path in re.findall(r"\btg\.[\w.]*\w", text):
            found: Any = tg
            for part in path.split(".")[1:]:
                found = getattr(found, part)


def test_other_names_are_missing_without_advice() -> None:
    with pytest.raises(AttributeError, match="^module 'tapegrad' has no attribute 'no_such_name'$"):
        _ = tg.no_such_name


@pytest.mark.parametrize("name", ["is_complex", "is_conj", "is_neg"])
def test_no_tensor_is_complex(name: str) -> None:
    assert getattr(tg, name)(tg.ones(1)) is getattr(tg.ones(1), name)() is False
    with pytest.raises(TypeError, match=f"{name}\\(\\): argument 'input' .*must be Tensor, not float"):
        getattr(tg, name)(1.0)


@pytest.mark.parametrize(
    "name", ["is_meta", "is_mkldnn", "is_mps", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_xpu"]
)
def test_tensors_are_dense_and_in_the_memory_of_the_cpu(name: str) -> None:
    assert getattr(tg.ones(1), name) is False
