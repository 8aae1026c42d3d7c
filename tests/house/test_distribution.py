"""The distributions have every tracked file, and do not mistake a view at the repository's root for a package."""

import importlib
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
VIEWS = ["operators", "schedulers"]


def build(source: Path, target: str, folder: Path) -> Path:
    """Build one distribution with the hatchling that is installed, so that no network is asked for."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built from the sdist, as an installer does it where there is no wheel."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.4 brought it, 3.12 asks for it
        archive.extractall(unpacked)
    (source,) = unpacked.iterdir()

    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def needed(name: str, found: dict[str, metadata.Distribution]) -> dict[str, metadata.Distribution]:
    """Gather a distribution's dependencies, and theirs, without the extras."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if requirement.name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found[requirement.name] = metadata.distribution(requirement.name)
            needed(requirement.name, found)
    return found


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which the wheel is installed with its dependencies, and nothing else."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(ROOT / ".tools" / "bin"))
    if uv is None:
        pytest.skip("no uv here to install with: dev.py brings it")
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    installing = [uv, "pip", "install", "--offline", "--no-deps", "--python", str(folder), str(wheel)]
    subprocess.run(installing, check=True, capture_output=True)
    (site,) = [each for each in folder.rglob("site-packages") if each.parent.parent.name == "lib"]
    for distribution in needed("reactive-aio", {}).values():
        tops = {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder / "bin"


@pytest.mark.costly
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_the_wheel_in_an_environment_of_its_own_runs_the_first_program_of_the_readme(bare: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = text.partition("```python\n")[2].partition("```")[0]
    printed = text.partition("```text\n")[2].partition("```")[0]

    ran = subprocess.run([bare / "python", "-I", "-c", program], capture_output=True, text=True, check=True)

    assert printed.strip() == ran.stdout.strip()


@pytest.mark.costly
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_the_command_of_the_wheel_runs_a_flow_without_the_optional_dependencies(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "squares.py").write_text("from reactive_aio import Flow\nflow = Flow.range(4).map(lambda n: n * n)\n")

    ran = subprocess.run(
        [bare / "reactive-aio", "run", "squares.py:flow"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert ["0", "1", "4", "9"] == re.findall(r"^\s*(\d+)$", ran.stdout, re.MULTILINE)


def tracked(folder: str) -> set[str]:
    """The files that git tracks below a folder, as far as they are still there."""
    command = ["git", "ls-files", "-z", "--", folder]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, or no git here: there is no list to compare with")
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    if not names:
        pytest.skip(f"git tracks nothing below {folder}")
    return names


def test_the_wheel_built_through_the_sdist_has_every_tracked_file_of_the_package(wheel_names: set[str]) -> None:
    expected = tracked("reactive_aio")

    assert set() == expected - wheel_names
    assert "reactive_aio/py.typed" in wheel_names


def test_the_sdist_has_every_tracked_file_of_the_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert set() == tracked("tests") - names


def test_the_wheel_has_one_top_level_package(wheel_names: set[str]) -> None:
    packages = {name.partition("/")[0] for name in wheel_names}

    assert {"reactive_aio"} == {name for name in packages if not name.endswith(".dist-info")}


@pytest.mark.parametrize("name", VIEWS)
def test_the_view_at_the_root_is_a_relative_link_into_the_package(name: str) -> None:
    view = ROOT / name
    if not view.exists():
        pytest.skip("an unpacked sdist has no views")

    assert view.is_symlink()
    assert Path("reactive_aio", name) == view.readlink()


@pytest.mark.parametrize("name", VIEWS)
def test_nothing_is_imported_under_the_name_of_a_view(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / name).exists():
        pytest.skip("an unpacked sdist has no views")
    monkeypatch.syspath_prepend(str(ROOT))

    with pytest.raises(ImportError, match=f"import reactive_aio.{name}"):
        importlib.import_module(name)


@pytest.mark.parametrize("name", VIEWS)
def test_the_package_imports_under_its_own_name(name: str) -> None:
    assert f"reactive_aio.{name}" == importlib.import_module(f"reactive_aio.{name}").__name__
