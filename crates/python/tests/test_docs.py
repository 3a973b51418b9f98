"""Runs the examples in docstrings, in README files, and in every page of docs that has a block of Python."""

import doctest
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nandex

ROOT = Path(__file__).resolve().parents[3]
PAGES = [Path("README.md"), Path("crates/python/README.md")]
PAGES += [page.relative_to(ROOT) for page in sorted(ROOT.glob("docs/**/*.md")) if "```python" in page.read_text()]
SCRIPTS = sorted((ROOT / "examples/python").glob("*.py"))
# The packages that `make ray` installs, and the modules that need them.
ENGINES = {"ray.md": "ray", "dask_dedup.py": "distributed", "ray_rate.py": "ray", "spark_dedup.py": "pyspark"}


def documented() -> Iterator[tuple[str, str]]:
    """Names and docstrings of the objects with an example."""
    found: list[tuple[str, Any]] = [("nandex", nandex)]
    for name in nandex.__all__:
        value = getattr(nandex, name)
        found.append((name, value))
        if inspect.isclass(value):
            found.extend((f"{name}.{member}", getattr(value, member)) for member in vars(value))
    for name, value in found:
        doc = getattr(value, "__doc__", None)
        if isinstance(doc, str) and ">>>" in doc:
            yield name, inspect.cleandoc(doc)


@pytest.mark.parametrize(("name", "doc"), list(documented()), ids=[name for name, _ in documented()])
def test_the_examples_of_a_docstring_are_true(name: str, doc: str, db: nandex.Database, tmp_path: Path) -> None:
    names = {"nandex": nandex, "np": np, "db": db, "path": tmp_path / "other", "folder": tmp_path}
    examples = doctest.DocTestParser().get_doctest(doc, names, name, None, None)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(examples)
    assert runner.tries > 0 and runner.failures == 0


def test_everything_public_is_documented() -> None:
    for name in nandex.__all__:
        value = getattr(nandex, name)
        assert value.__doc__, name
        if inspect.isclass(value) and value.__module__ == "nandex" and not issubclass(value, (Exception, dict)):
            for member, function in vars(value).items():
                if not member.startswith("_"):
                    assert function.__doc__, f"{name}.{member}"


def needs_engine(page: Path) -> None:
    """Skips examples that need an engine that is not installed."""
    engine = ENGINES.get(page.name)
    if engine is not None:
        pytest.importorskip(engine, reason=f"{engine} is not installed: `make ray` installs it")
    if engine == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java: install openjdk-17-jre-headless")


@pytest.mark.parametrize("module", ["nandex.shards", "nandex.ray"])
def test_the_examples_of_a_module_are_true(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "nandex.ray":
        ray = pytest.importorskip("ray", reason="ray is not installed: `make ray` installs it")
        monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    loaded = importlib.import_module(module)
    names = {"nandex": nandex, "np": np, "folder": tmp_path, **vars(loaded)}
    examples = doctest.DocTestParser().get_doctest(inspect.cleandoc(loaded.__doc__ or ""), names, module, None, None)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(examples)
    if module == "nandex.ray":
        ray.shutdown()
    assert runner.tries > 0 and runner.failures == 0


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_programs_of_a_page_run(page: Path, tmp_path: Path) -> None:
    needs_engine(page)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_example_runs_as_its_first_lines_say(script: Path, tmp_path: Path) -> None:
    needs_engine(script)
    usage = re.search(r"^Usage: python \S+(.*)$", script.read_text(), re.MULTILINE)
    assert usage, f"{script} has no line with its usage"
    (tmp_path / "words.txt").write_text("the cat and the hat\nthe dog\n" * 100)
    arguments = usage.group(1).split()
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout, done.stderr
