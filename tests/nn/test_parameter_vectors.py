"""Parameters as one vector, and back."""

import pytest

import tapegrad as tg

to_vector, from_vector = tg.nn.utils.parameters_to_vector, tg.nn.utils.vector_to_parameters


def leaves() -> list[tg.Tensor]:
    return [tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), tg.tensor(5.0, requires_grad=True)]


def test_vector_has_all_elements_in_order() -> None:
    assert to_vector(leaves()).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_vector_is_recorded() -> None:
    params = leaves()
    (to_vector(params) * tg.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).sum().backward()
    assert [p.grad.tolist() for p in params] == [[[1.0, 2.0], [3.0, 4.0]], 5.0]


def test_parameters_take_the_elements() -> None:
    params = leaves()
    from_vector(tg.tensor([6.0, 7.0, 8.0, 9.0, 10.0]), params)
    assert [p.tolist() for p in params] == [[[6.0, 7.0], [8.0, 9.0]], 10.0]
    assert all(p.requires_grad and p.is_leaf for p in params)


def test_later_writes_to_the_vector_do_not_reach_the_parameters() -> None:
    params, vector = leaves(), tg.zeros(5)
    from_vector(vector, params)
    vector.fill_(1.0)
    assert [p.tolist() for p in params] == [[[0.0, 0.0], [0.0, 0.0]], 0.0]


@pytest.mark.parametrize("index", [0, 1])
def test_graphs_recorded_before_keep_their_values(index: int) -> None:
    params = leaves()
    p = params[index]
    expected = (2 * p.detach()).tolist()
    loss = (p * p).sum()
    from_vector(tg.zeros(5), params)
    loss.backward()
    assert p.grad.tolist() == expected


def test_gradients_are_of_the_new_values() -> None:
    params = leaves()
    (params[1] * params[1]).backward()
    from_vector(tg.full((5,), 7.0), params)
    params[1].grad = None
    (params[1] * params[1]).backward()
    assert params[1].grad.item() == 14.0


@pytest.mark.parametrize(
    ("vector", "kind", "message"),
    [
        ([1.0] * 5, TypeError, "expected tapegrad.Tensor, but got: list"),
        (tg.ones(4), RuntimeError, r"5 elements in all, but the vector has shape \[4\]"),
        (tg.ones(5, 1), RuntimeError, r"the vector has shape \[5, 1\]"),
    ],
)
def test_wrong_vector_changes_nothing(vector: object, kind: type[Exception], message: str) -> None:
    params = leaves()
    with pytest.raises(kind, match=message):
        from_vector(vector, params)
    assert [p.tolist() for p in params] == [p.tolist() for p in leaves()]
