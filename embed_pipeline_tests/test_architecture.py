"""The layout shows the architecture; this keeps it true."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import embed_pipeline
from embed_pipeline_tests import twins

ROOT = Path(embed_pipeline.__file__).parent

LAYERS = {
    "errors": 0,
    "telemetry": 0,
    "domain": 1,
    "settings": 2,
    "ports": 3,
    "reaper": 4,
    "stores": 4,
    "providers": 4,
    "worker": 5,
    "usecases": 6,
    "wiring": 7,
    "api": 8,
    "defs": 9,
    "interfaces": 9,
    "definitions": 10,
    "__main__": 10,
}
"""Low to high. The worker and the use cases know ports, never what stands behind them."""

STRANGERS = {"worker": {"stores", "providers", "reaper"}, "usecases": {"stores", "providers"}}

HOMES = {
    "dagster": {"defs", "definitions"},
    "neo4j": {"stores.neo4j"},
    "sqlite3": {"stores.sqlite"},
    "openai": {"providers.openai", "providers.azure"},
    "tiktoken": {"providers.tokens"},
    "tokenizers": {"providers.local"},
    "psycopg": {"reaper", "stores.postgres"},
    "pandas": {"api", "defs.library.io_manager", "usecases.insight.daily_report"},
    "prometheus_client": {"interfaces.metrics"},
    "pyarrow": {"usecases.files"},
    "openpyxl": {"usecases.files"},
    "typer": {"interfaces", "__main__"},
    "rich": {"interfaces"},
    "mcp": {"interfaces.mcp"},
    "anyio": {"interfaces.mcp"},
    "starlette": {"interfaces.mcp.guards"},
    "uvicorn": {"interfaces.mcp.http"},
    "structlog": {"telemetry"},
    "opentelemetry": {"telemetry.spans"},
    "pydantic": {"settings", "defs", "interfaces.mcp"},
    "dotenv": {"settings"},
    "yaml": {"settings"},
    "certifi": {"settings"},
    "pydantic_core": {"providers.openai"},
}

BACKENDS = {"sqlite", "neo4j", "postgres"}

LONGEST_MODULE = 250
LONGEST_FUNCTION = 40
MOST_MODULES = 16
TOO_LONG_A_RUN = 12
"""Lines that two backends have in common: what is the same is written once, beside them."""


def modules() -> Iterator[tuple[str, ast.Module, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text()
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(source), source


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_home(module: str, homes: set[str]) -> bool:
    return any(module == home or module.startswith(home + ".") for home in homes)


def looks_up_or_across(module: str, target: str) -> bool:
    layer, other = module.split(".")[0], target.split(".")[1]
    if other not in LAYERS or layer == other:
        return False  # the same package, or a name of the top-level package itself
    return LAYERS[other] >= LAYERS[layer] or other in STRANGERS.get(layer, set())


def test_every_module_imports_only_from_a_lower_layer_or_its_own_package() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, tree, _ in modules()
        if name in LAYERS or "." in name
        for target in imports(tree)
        if target.startswith("embed_pipeline.") and looks_up_or_across(name, target)
    ]

    assert wrong == []


def test_every_package_has_a_layer() -> None:
    packages = {name.split(".")[0] for name, _, _ in modules()} - {"__init__", "embed_pipeline", ""}

    assert packages <= LAYERS.keys()


def test_third_party_packages_stay_in_their_homes() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, tree, _ in modules()
        for target in imports(tree)
        if (homes := HOMES.get(target.split(".")[0])) and not at_home(name, homes)
    ]

    assert wrong == []


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        name for name, _, source in modules() if "os.environ" in source or "getenv" in source
    }

    assert readers <= {name for name in readers if at_home(name, {"settings"})}


def test_only_the_clock_asks_for_the_time_of_day() -> None:
    askers = {name for name, _, source in modules() if "datetime.now(" in source}

    assert askers <= {"ports.clock"}


def test_backends_and_providers_do_not_know_each_other() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, tree, _ in modules()
        if name.startswith("stores.")
        for target in imports(tree)
        if target.startswith("embed_pipeline.stores.")
        and target.split(".")[2] in BACKENDS - {name.split(".")[1]}
    ]

    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    names = {name for name, _, _ in modules()}
    graph: dict[str, set[str]] = defaultdict(set)
    for name, tree, _ in modules():
        for target in imports(tree):
            inner = target.removeprefix("embed_pipeline.")
            for candidate in (inner, inner.rpartition(".")[0]):
                if candidate in names and candidate != name:
                    graph[name].add(candidate)
                    break

    TopologicalSorter(graph).prepare()  # raises CycleError


def test_modules_and_functions_stay_small() -> None:
    long_modules = {
        name: len(source.splitlines())
        for name, _, source in modules()
        if len(source.splitlines()) > LONGEST_MODULE
    }
    long_functions = {
        f"{name}.{node.name}": node.end_lineno - node.lineno + 1
        for name, tree, _ in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    }

    assert (long_modules, long_functions) == ({}, {})


def test_no_two_backends_say_the_same() -> None:
    found: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for backend in BACKENDS:
        for path in sorted((ROOT / "stores" / backend).rglob("*.py")):
            for run, line in twins.runs(twins.shapes(path), TOO_LONG_A_RUN).items():
                found[run][backend] = f"{path.relative_to(ROOT)}:{line}"

    assert [list(places.values()) for places in found.values() if len(places) > 1] == []


def test_folders_stay_small() -> None:
    counts = Counter(path.parent for path in ROOT.rglob("*.py") if path.stem != "__init__")

    crowded = {str(folder): count for folder, count in counts.items() if count > MOST_MODULES}
    assert crowded == {}


def test_dagster_files_have_no_postponed_annotations() -> None:
    """Dagster compares an op's annotations with classes; a string would not do."""
    wrong = [
        name
        for name, _, source in modules()
        if at_home(name, {"defs", "definitions"}) and "from __future__ import annotations" in source
    ]

    assert wrong == []
