"""Contracts are bound to a backend by one line, which forgets none of them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, MutableMapping
from importlib import import_module

from embed_pipeline_tests import contracts


def bind(namespace: MutableMapping[str, object], bound: Iterable[type]) -> None:
    """Give the module with these globals a test class of each contract.

    `EnqueueContract` becomes `TestEnqueue`. The module has the fixtures that the contracts use.
    """
    for contract in bound:
        name = "Test" + contract.__name__.removesuffix("Contract")
        assert name not in namespace, f"{name} is bound twice"
        namespace[name] = type(name, (contract,), {"__module__": namespace["__name__"]})


def _contracts_in(*names: str) -> Iterator[type]:
    """Every class …Contract of the modules and packages with these names."""
    for name in names:
        module = import_module(f"{contracts.__name__}.{name}")
        yield from (
            found
            for title, found in vars(module).items()
            if title.endswith("Contract") and found.__module__ == module.__name__
        )
        if path := getattr(module, "__path__", None):
            yield from _contracts_in(
                *(f"{name}.{found.name}" for found in pkgutil.iter_modules(path))
            )


QUEUE_CONTRACTS = tuple(_contracts_in("job_store", "rate_limiter", "heeding"))
GRAPH_CONTRACTS = tuple(_contracts_in("entity_store"))
COLLECTION_CONTRACTS = tuple(_contracts_in("collections"))
