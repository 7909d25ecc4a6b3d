"""The types of arrays: Float[Array, "B L D"], by the letters of the tour.

They are annotations, which nothing checks at run time but the tests
(tests/conftest.py): there, an array of another type or shape is an error. A
letter stands for one size within a call; `*` before it, for any number of
dimensions.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, Key, Shaped, UInt32

Array = jax.Array | np.ndarray
Size = Any  # An int, or an unknown one of a program that is exported.

__all__ = ("Array", "Bool", "Float", "Int", "Key", "Shaped", "Size", "UInt32")
