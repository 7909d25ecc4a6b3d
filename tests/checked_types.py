"""Checks annotations at run time, shapes of jaxtyping among them."""

import beartype

# An int is a float, as in PEP 484.
checked = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
