"""Constraints from JAX and PyTorch functions, their derivatives taken automatically in float64.

Each needs its library, imported when the adapter is called: ``pip install 'coldq[jax]'`` or
``'coldq[torch]'``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import installed
from coldq.slot.constraints import Convex


def from_jax(
    function: Callable[[Any], Any], n_constraints: int = 1, *, hessian: bool = True
) -> Convex:
    """A constraint from a JAX function of one point (p,) that returns N values, or one number.

    The function is compiled once for every p. With ``hessian=False``, for functions with kinks or
    very many coordinates, the step is certified to a gap of 1e-6 instead of exact.

    >>> import coldq
    >>> coldq.adapters.from_jax  # doctest: +ELLIPSIS
    <function from_jax at ...>
    """
    jax = installed("jax", "from_jax needs jax: install it with pip install 'coldq[jax]'")
    jnp: Any = import_module("jax.numpy")

    def rows(x: Any) -> Any:
        return jnp.reshape(function(x), (-1,))

    compiled = (jax.jit(f) for f in (rows, jax.jacrev(rows), jax.hessian(rows)))

    def in_float64(derivative: Callable[[Any], Any]) -> Callable[[Array], Array]:
        def call(x: Array) -> Array:
            with jax.enable_x64(True):
                return np.asarray(derivative(jnp.asarray(x, dtype=jnp.float64)))

        return call

    value, jacobian, second = (in_float64(f) for f in compiled)
    return Convex(value, jacobian, second if hessian else None, n_constraints)


def from_torch(
    function: Callable[[Any], Any], n_constraints: int = 1, *, hessian: bool = True
) -> Convex:
    """A constraint from a PyTorch function of one point (p,) that returns N values, or one number.

    With ``hessian=False``, for functions with kinks or very many coordinates, the step is
    certified to a gap of 1e-6 instead of exact.

    >>> import coldq
    >>> coldq.adapters.from_torch  # doctest: +ELLIPSIS
    <function from_torch at ...>
    """
    torch = installed("torch", "from_torch needs torch: install it with pip install 'coldq[torch]'")

    def rows(x: Any) -> Any:
        return torch.reshape(function(x), (-1,))

    def value(x: Array) -> Array:
        with torch.no_grad():
            return rows(torch.tensor(x, dtype=torch.float64)).numpy()

    def jacobian(x: Array) -> Array:
        point = torch.tensor(x, dtype=torch.float64)
        return torch.autograd.functional.jacobian(rows, point).numpy()

    def second(x: Array) -> Array:
        point = torch.tensor(x, dtype=torch.float64)

        def one(k: int) -> Callable[[Any], Any]:
            def row(z: Any) -> Any:
                return rows(z)[k]

            return row

        each = [torch.autograd.functional.hessian(one(k), point) for k in range(n_constraints)]
        return torch.stack(each).numpy()

    return Convex(value, jacobian, second if hessian else None, n_constraints)
