"""Fails if pyright is not certain of the type of a public name or of a public member: `python .ci/public_types.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

PUBLIC = ("glmsse", "glmsse.encode")
# A private base class has attributes of its own that nobody sees; docstrings are looked at by other checks.
OTHER = ("Type of base class", "No docstring")


def main() -> int:
    command = ["pyright", "--pythonpath", sys.executable, "--verifytypes", "glmsse", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    places = {
        f"{module}.{name}": set(homes(module, name)) for module in PUBLIC for name in import_module(module).__all__
    }
    complaints = []
    for symbol in symbols:
        for name, prefixes in places.items():
            if any(is_member(symbol["name"], prefix) for prefix in prefixes):
                messages = (" ".join(diagnostic["message"].split()) for diagnostic in symbol["diagnostics"])
                complaints += [f"{name}: {message}" for message in messages if not message.startswith(OTHER)]
    print(*complaints, sep="\n", end="\n" if complaints else "", file=sys.stderr)
    print(f"{len(places)} public names, {len(complaints)} complaints")
    return 1 if complaints else 0


def homes(module: str, name: str) -> Iterator[str]:
    """Where a public name is defined, as pyright calls it: by its class's or function's module, if it has one."""
    home = getattr(getattr(import_module(module), name), "__module__", module)
    yield f"{module}.{name}"
    yield f"{home}.{name}"
    if home.endswith("._framer"):
        yield f"glmsse._deltas_py.{name}"


def is_member(symbol: str, prefix: str) -> bool:
    rest = symbol.removeprefix(prefix)
    return symbol.startswith(prefix) and rest[:1] in ("", ".") and (not rest.startswith("._") or rest.startswith(".__"))


if __name__ == "__main__":
    sys.exit(main())
