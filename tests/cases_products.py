"""Products of vectors, matrices and labelled dimensions."""

from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg

RNG = np.random.default_rng(11)


def array(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 1.5, shape) * RNG.choice([-1.0, 1.0], shape)


M, N, V, W = array(2, 3), array(3, 2), array(3), array(2)
STACK, OTHER = array(2, 2, 3), array(2, 3, 2)


def summed(equation: str, *arrays: np.ndarray, label: str = "") -> Case:
    reference = lambda *a: np.einsum(equation, *a)  # noqa: E731
    return Case("einsum", lambda *t: tg.einsum(equation, *t), arrays, reference, label or equation)


def scaled(name: str, product: Any, *arrays: np.ndarray, beta: float = 1.0, alpha: float = 1.0) -> Case:
    return Case(
        name,
        lambda *t: getattr(tg, name)(*t, beta=beta, alpha=alpha),
        arrays,
        lambda c, x, y: beta * c + alpha * product(x, y),
        f"beta={beta:g},alpha={alpha:g}",
    )


CASES: list[Case] = [
    summed("ij,jk->ik", M, N),
    summed("ij,jk", M, N),
    summed("ij,jk->ki", M, N),
    summed("ji,jk->ik", M, array(2, 2)),
    summed("bij,bjk->bik", STACK, OTHER),
    summed("bij,bjk->ikb", STACK, OTHER),
    summed("bij,bjk->i", STACK, OTHER),
    summed("i,i", V, V + 0.1),
    summed("i,j->ij", V, W),
    summed("i,j->ji", V, W),
    summed("ij,j->ij", M, V),
    summed("ii->i", array(3, 3)),
    summed("ii", array(3, 3)),
    summed("iij->ji", array(2, 2, 3)),
    summed("ij->ji", M),
    summed("ij->", M),
    summed("iij,jk->k", array(2, 2, 3), N),
    summed("...ij,...jk->...ik", STACK, OTHER),
    summed("i...,i...->...", M, array(2, 1), label="stretched"),
    summed("...j,j...", M, N),
    Case("einsum", lambda x: tg.einsum("...ij->ij", x), (STACK,), lambda x: x.sum(0), "...ij->ij"),
    summed("ij,jk,kl->il", M, N, array(2, 2)),
    summed("ij,ij,ij->j", M, array(2, 3), array(2, 3)),
    summed("i,ij,j->", W, M, V),
    summed("ab,bc,cd,de->ae", array(2, 2), M, N, array(2, 1)),
    Case("einsum", lambda x, y: tg.einsum(x, [0, 1], y, [1, 5], [5, 0]), (M, N), lambda x, y: (x @ y).T, "sublists"),
    Case("einsum", lambda x, y: tg.einsum("ij,ij->j", x, y), (M, array(2, 1)), lambda x, y: (x * y).sum(0), "size one"),
    Case("tensordot", lambda x, y: tg.tensordot(x, y, dims=1), (M, N), lambda x, y: np.tensordot(x, y, 1), "1"),
    Case("tensordot", lambda x, y: tg.tensordot(x, y), (STACK, array(2, 3, 2)), lambda x, y: np.tensordot(x, y), "2"),
    Case("tensordot", lambda x, y: tg.tensordot(x, y, dims=0), (V, W), np.multiply.outer, "0"),
    Case(
        "tensordot",
        lambda x, y: tg.tensordot(x, y, dims=([0, 2], [2, 1])),
        (STACK, OTHER),
        lambda x, y: np.tensordot(x, y, ([0, 2], [2, 1])),
        "lists",
    ),
    Case("inner", tg.inner, (STACK, M), np.inner),
    Case("inner", tg.inner, (V, V + 0.1), np.inner, "vectors"),
    Case("inner", tg.inner, (M, array()), np.inner, "0-d", expands=False),
    Case("kron", tg.kron, (M, N), np.kron),
    Case("kron", tg.kron, (V, N), np.kron, "ranks"),
    Case("vdot", tg.vdot, (V, V + 0.1), np.vdot),
    Case("linalg.vecdot", tg.linalg.vecdot, (M, V), lambda x, y: (x * y).sum(-1)),
    Case("linalg.vecdot", lambda x, y: tg.linalg.vecdot(x, y, dim=0), (M, M + 0.1), lambda x, y: (x * y).sum(0), "dim"),
    Case("cross", lambda x, y: tg.cross(x, y), (N, N + V[:, None]), lambda x, y: np.cross(x, y, axis=0)),
    Case("linalg.cross", tg.linalg.cross, (STACK, array(1, 2, 3)), np.cross),
    Case("trace", tg.trace, (M,), np.trace),
    Case("addmm", tg.addmm, (W, M, N), lambda c, x, y: c + x @ y),
    scaled("addmv", lambda x, y: x @ y, W, M, V, beta=0.5, alpha=2.0),
    scaled("addmv", lambda x, y: x @ y, array(1), M, V),
    scaled("addr", np.multiply.outer, M, W, V, beta=0.5, alpha=2.0),
    scaled("addr", np.multiply.outer, V, W, V),
    scaled("addbmm", lambda x, y: (x @ y).sum(0), W, STACK, OTHER, beta=0.5, alpha=2.0),
    scaled("addbmm", lambda x, y: (x @ y).sum(0), array(2, 2), STACK, OTHER),
    scaled("baddbmm", lambda x, y: x @ y, array(2, 1), STACK, OTHER, beta=0.5, alpha=2.0),
    scaled("baddbmm", lambda x, y: x @ y, array(2, 2, 2), STACK, OTHER),
    Case("linalg.multi_dot", lambda *t: tg.linalg.multi_dot(t), (W, M, N, W), lambda *a: np.linalg.multi_dot(a)),
    Case("linalg.multi_dot", lambda *t: tg.linalg.multi_dot(t), (M, N, M), lambda *a: np.linalg.multi_dot(a), "matrices"),
    Case("chain_matmul", tg.chain_matmul, (M, N, M), lambda *a: np.linalg.multi_dot(a)),
    Case("matmul", tg.matmul, (STACK, OTHER), np.matmul),
    Case("matmul", tg.matmul, (W, M), np.matmul, "vector first"),
    Case("matmul", tg.matmul, (STACK, OTHER[0, :, 0]), np.matmul, "stack and vector"),
    Case("matmul", tg.matmul, (OTHER[0, :, 0], np.stack([OTHER, OTHER])), np.matmul, "vector and batches"),
    Case("mm", tg.mm, (M, N), np.matmul),
    Case("mv", tg.mv, (M, V), np.matmul),
    Case("dot", tg.dot, (V, V + 0.1), np.dot),
    Case("bmm", tg.bmm, (STACK, OTHER), np.matmul),
    Case("ger", tg.ger, (V, W), np.outer),
    Case("linear", tg.nn.functional.linear, (STACK, N.T, W), lambda x, w, b: x @ w.T + b),
    Case("linear", tg.nn.functional.linear, (M, N.T), lambda x, w: x @ w.T, "no bias"),
    Case("outer", tg.outer, (V, W), np.outer),
]
