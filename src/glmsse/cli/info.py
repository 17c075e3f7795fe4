"""`glmsse info`: which version and which build, and what it is set to."""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import asdict
from typing import Any

from .._version import __version__
from ..framing import IMPLEMENTATION, IMPLEMENTATION_REASON
from ..limits import Limits
from ..profiles import PROFILES, TOLERANCES
from .outcome import ACCEPTED
from .terminal import table


def add_to(commands: Any) -> None:
    parser = commands.add_parser("info", help="show the version, the active build, limits, profiles and tolerances")
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: tables)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    facts = {
        "version": __version__,
        "implementation": IMPLEMENTATION,
        "reason": IMPLEMENTATION_REASON,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    limits = asdict(Limits())
    if args.json:
        print(json.dumps({**facts, "limits": limits, "profiles": PROFILES, "tolerances": TOLERANCES}))
        return ACCEPTED
    print("\n".join(f"{name:15} {value}" for name, value in facts.items()))
    print("\n" + table(("limit", "default"), [(name, f"{value:,}") for name, value in limits.items()]))
    turned_on_by = {
        name: ", ".join(profile for profile, names in PROFILES.items() if name in names) or "allow= only"
        for name in TOLERANCES
    }
    rows = [(name, turned_on_by[name], what) for name, what in TOLERANCES.items()]
    print("\n" + table(("tolerance", "on in", "what it does"), rows))
    return ACCEPTED
