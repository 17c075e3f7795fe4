"""What a release publishes: which wheels, with what in them, and the same bytes each time."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from check_dists import check_contents, wrong_contents

PYTHONS = ("cp310", "cp311", "cp312", "cp313", "cp314", "cp314t")
PLATFORMS = {
    "linux": ("manylinux_x86_64", "musllinux_x86_64", "manylinux_aarch64", "musllinux_aarch64"),
    "macos": ("macosx_x86_64", "macosx_arm64"),
    "windows": ("win_amd64", "win_arm64"),
}


def hashes(directory: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_binary_wheels_are_built_for_just_the_documented_interpreters(root: Path, platform: str) -> None:
    command = ["cibuildwheel", "--print-build-identifiers", "--platform", platform, str(root)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert sorted(shown) == sorted(f"{python}-{kind}" for python in PYTHONS for kind in PLATFORMS[platform])


def test_page_about_installing_lists_the_same_wheels(root: Path) -> None:
    page = (root / "docs" / "installing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (`.*) \| (.*) \|$", page, re.MULTILINE)
    written = {name.lower(): (kinds.replace("`", "").split(", "), pythons.split(", ")) for name, kinds, pythons in rows}
    told = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.14t"]
    assert written == {platform: (list(kinds), told) for platform, kinds in PLATFORMS.items()}


def test_there_is_one_of_each_kind(built: Path) -> None:
    assert len(list(built.iterdir())) == 3
    assert sum(path.name.endswith("-py3-none-any.whl") for path in built.iterdir()) == 1
    assert sum(path.name.endswith(".tar.gz") for path in built.iterdir()) == 1


def test_contents_and_metadata_are_right(built: Path) -> None:
    check_contents(sorted(built.iterdir()))


def test_generated_code_and_strangers_in_a_wheel_are_found(built: Path, tmp_path: Path) -> None:
    (pure,) = built.glob("*-py3-none-any.whl")
    spoilt = tmp_path / pure.name
    with zipfile.ZipFile(pure) as old, zipfile.ZipFile(spoilt, "w") as new:
        for name in old.namelist():
            if name != "glmsse/py.typed":
                new.writestr(name, old.read(name))
        new.writestr("glmsse/_framer.c", "")
        new.writestr("tests/test_x.py", "")
    assert list(wrong_contents(spoilt)) == [
        "glmsse/py.typed is missing",
        "glmsse/_framer.c has no place here",
        "tests/test_x.py has no place here",
    ]


def test_source_distribution_has_no_owner_and_one_time(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert len({member.mtime for member in members}) == 1
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert {member.mode for member in members} <= {0o644, 0o755}
    assert [member.name for member in members] == sorted(member.name for member in members)


def test_two_builds_of_one_commit_are_equal(built: Path, root: Path, tmp_path: Path) -> None:
    """The second one in a clone elsewhere, later, and under another umask and locale."""
    clone = tmp_path / "a clone elsewhere"
    subprocess.run(["git", "clone", "-q", str(root), str(clone)], check=True)
    out = tmp_path / "out"
    script = (
        f"umask 077; LC_ALL=C TZ=Asia/Tokyo exec '{sys.executable}' tools/build.py '{out}' --python '{sys.executable}'"
    )
    subprocess.run(["sh", "-c", script], cwd=clone, check=True)
    assert hashes(out) == hashes(built)


def test_extension_says_that_it_needs_no_global_lock(root: Path, tmp_path: Path) -> None:
    """As C for an interpreter without one; others ignore it."""
    script = (
        "import setuptools; setuptools.setup = lambda ext_modules: None\n"
        "exec(compile(open('setup.py').read(), 'setup.py', 'exec'))\n"
        "print(extensions[0].sources[0])"
    )
    tree = tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", str(root), str(tree)], check=True)
    done = subprocess.run([sys.executable, "-c", script], cwd=tree, check=True, capture_output=True, text=True)
    generated = (tree / done.stdout.split()[-1]).read_text(encoding="utf-8")
    # What holds unless the person who compiles it says otherwise.
    assert "#else\n#define __Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_NOT_USED\n#endif" in generated


def test_version_is_written_once(root: Path) -> None:
    version = (root / "src" / "glmsse" / "_version.py").read_text(encoding="utf-8").split('"')[1]
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in project
    assert version not in project
    assert re.search(rf"^## ({re.escape(version)}|Unreleased)\b", (root / "CHANGELOG.md").read_text("utf-8"), re.M)
