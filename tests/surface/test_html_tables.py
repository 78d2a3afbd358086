"""Tensors in notebooks: tables that are well-formed and show values, gradients and what made them."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

import tapegrad as tg


def texts(t: tg.Tensor) -> list[str]:
    root = ElementTree.fromstring(f"<div>{t._repr_html_()}</div>")
    return [text.strip() for text in root.itertext() if text.strip()]


def test_elements_of_small_tensors_are_cells() -> None:
    assert texts(tg.tensor([[1.0, 2.5], [3.0, float("nan")]]))[:4] == ["1", "2.5", "3", "nan"]
    assert texts(tg.tensor([1, 2]))[:2] == ["1", "2"]


def test_gradient_and_origin_are_shown() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.sum().backward()
    assert texts(x)[2:] == ["shape", "(2,)", "dtype", "float64", "made by", "nothing: a leaf", "gradient", "tensor([2., 4.])"]
    assert "MulBackward0" in texts(y)


def test_large_and_odd_shapes_are_texts() -> None:
    assert texts(tg.tensor(np.zeros((100, 100))))[0].startswith("tensor([[0., 0.")
    assert texts(tg.tensor(2.0))[0] == "tensor(2.)"
    assert "(0,)" in texts(tg.tensor([]))
