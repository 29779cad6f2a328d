"""The workflows, which no machine of ours runs: they fit GitHub's schema, and what they call is in the project."""

import re
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NO_WHEELS = {("3.14", "numpy==2.1.*")}

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not part of this copy")


def check(*files):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def jobs():
    for file in WORKFLOWS:
        for name, job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].items():
            yield pytest.param(job, id=f"{file.stem}-{name}")


def combinations(job):
    """What a job runs with: the product of its matrix less what is excluded."""
    axes = {name: values for name, values in job.get("strategy", {}).get("matrix", {}).items() if name != "exclude"}
    excluded = job.get("strategy", {}).get("matrix", {}).get("exclude", [])
    for values in product(*axes.values()):
        one = dict(zip(axes, values, strict=True))
        if not any(entry.items() <= one.items() for entry in excluded):
            yield one


def test_workflows_fit_the_schema():
    done = check(*WORKFLOWS)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("runs-on:", "runs_on:"), ("timeout-minutes: 90", "timeout-minutes: long"), ("- run: make test", "- runs: make test")],
    ids=["key", "type", "step"],
)
def test_the_schema_refuses_a_mistake(right, wrong, tmp_path):
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert right in text
    (tmp_path / "wrong.yml").write_text(text.replace(right, wrong, 1), encoding="utf-8")
    assert check(tmp_path / "wrong.yml").returncode == 1


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_that_was_never_run_says_so_first(file):
    assert file.read_text(encoding="utf-8").splitlines()[0].startswith("# This workflow was never run")


@pytest.mark.parametrize("job", list(jobs()))
def test_the_commands_of_a_workflow_are_in_the_project(job):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    assert set(re.findall(r"\bmake ([\w-]+)", commands)) <= targets
    assert set(re.findall(r'"\.\[([\w-]+)\]"', commands)) <= extras
    assert [path for path in re.findall(r"python (scripts/\S+)", commands) if not (ROOT / path).is_file()] == []


def test_the_tests_run_on_each_python_with_the_oldest_and_the_newest_numpy_on_each_system():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = int(re.search(r">=3\.(\d+)", project["requires-python"])[1])
    numpy = next(name for name in project["dependencies"] if name.startswith("numpy>="))
    pythons = [f"3.{minor}" for minor in range(oldest, 15)]
    wanted = set(product(pythons, (numpy.replace(">=", "==") + ".*", numpy))) - NO_WHEELS
    file = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    systems = {}
    for job in (job for job in file["jobs"].values() if "strategy" in job):
        for one in combinations(job):
            systems.setdefault(one["runner"], set()).add((one["python"], one["numpy"]))
    assert {re.match(r"[a-z]+", name)[0] for name in systems} == {"ubuntu", "macos", "windows"}
    assert any(name.endswith("-arm") for name in systems)
    assert [name for name, found in systems.items() if found != wanted] == []
