"""Builds what libFuzzer needs by clang: its module, and a copy of the package whose extension reports its coverage."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from ..builds import ROOT, SOURCE

DRIVER = Path(__file__).with_name("libfuzzer.c")
CLANG = os.environ.get("CLANG", "clang")
OUT = ROOT / "build" / "fuzz"


def built() -> Path:
    """The folder of both, made anew when a source has changed since; CalledProcessError if it cannot be."""
    folder = OUT / _state()
    if not (folder / "ready").is_file():
        _build_driver(folder)
        _build_package(folder)
        (folder / "ready").touch()
    return folder


def _state() -> str:
    digest = hashlib.sha256(f"{sys.version}\n{CLANG}\n".encode())
    for path in [DRIVER, ROOT / "setup.py", *sorted(SOURCE.glob("*.p*"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build_driver(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"libclang_rt.fuzzer_no_main-{os.uname().machine}.a"
    asked = subprocess.run([CLANG, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    archive = asked.stdout.strip()
    if not os.path.isabs(archive):
        resources = subprocess.run([CLANG, "-print-resource-dir"], check=True, capture_output=True, text=True)
        archive = str(Path(resources.stdout.strip()) / "lib" / "linux" / name)
    module = folder / f"_libfuzzer{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = [CLANG, "-shared", "-fPIC", "-O2", "-I", sysconfig.get_path("include"), str(DRIVER), "-o", str(module)]
    command += ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-lstdc++", "-lm", "-lpthread"]
    subprocess.run(command, check=True)


def _build_package(folder: Path) -> None:
    environment = {
        **os.environ,
        "GLMSSE_BUILD_EXTENSION": "yes",
        "CC": CLANG,
        "LDSHARED": f"{CLANG} -shared",
        "CFLAGS": "-O2 -fsanitize=fuzzer-no-link",
    }
    command = [sys.executable, "setup.py", "-q", "build", "--build-base", str(folder / "objects")]
    command += ["--build-lib", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
