"""Verbs that need more than this package itself."""

from __future__ import annotations

from importlib import import_module

from .outcome import Unreadable

PACKAGES = {
    "server": ("starlette", "uvicorn"),
    "http": ("httpx",),
    "proxy": ("httpx", "prometheus_client", "starlette", "uvicorn"),
    "http2": ("zttp",),
    "audit": ("fsspec", "pyarrow"),
    "dask": ("distributed",),
    "report": ("jinja2",),
    "cli": ("rich",),
}
"""What each extra brings."""


def missing_from(extra: str) -> list[str]:
    """The packages of an extra that cannot be imported."""
    missing = []
    for package in PACKAGES[extra]:
        try:
            import_module(package)
        except ImportError:
            missing.append(package)
    return missing


def need(verb: str, extra: str) -> None:
    """Unreadable, with what to install, unless the extra's packages are there."""
    missing = missing_from(extra)
    if missing:
        raise Unreadable(f'{verb} needs {" and ".join(missing)}: python -m pip install "glmsse[{extra}]"')
