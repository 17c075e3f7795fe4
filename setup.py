"""Describes the optional extension; everything else is in pyproject.toml.

GLMSSE_BUILD_EXTENSION=auto  build it, fall back to the pure twin when that fails (default)
GLMSSE_BUILD_EXTENSION=yes   fail when it cannot be built
GLMSSE_BUILD_EXTENSION=no    pure twin only
"""

import os
import platform
from glob import glob

from setuptools import Extension, setup

mode = os.environ.get("GLMSSE_BUILD_EXTENSION", "auto")
if mode not in ("auto", "yes", "no"):
    raise SystemExit(f"GLMSSE_BUILD_EXTENSION takes auto, yes or no, not {mode!r}")

extensions = []
if mode == "yes" or (mode == "auto" and platform.python_implementation() == "CPython"):
    from Cython.Build import cythonize

    extensions = cythonize(
        [Extension("glmsse._framer", ["src/glmsse/_framer.pyx"], depends=glob("src/glmsse/*.pxi"))],
        build_dir="build/cython",
        # All state is in the objects, and one object belongs to one thread at a time.
        compiler_directives={"freethreading_compatible": True},
    )
    for extension in extensions:
        extension.optional = mode == "auto"  # cythonize() drops the flag

setup(ext_modules=extensions)
