"""The flags: parsed, checked, read anew, and listed."""

from pathlib import Path

import pytest

from jitlab.errors import OptionError
from jitlab.flags import KNOWN, AutoJit, read_flags, table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "flags.md"


def flags(tf="", xla=""):
    return read_flags({"TF_XLA_FLAGS": tf, "XLA_FLAGS": xla})


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("--tf_xla_auto_jit=2", "tf_xla_auto_jit", AutoJit(2)),
        ("--tf_xla_auto_jit=-1", "tf_xla_auto_jit", AutoJit(-1)),
        ("--tf_xla_auto_jit=fusible", "tf_xla_auto_jit", AutoJit(1, fusible=True)),
        ("--tf_xla_auto_jit=single-gpu(2)", "tf_xla_auto_jit", AutoJit(2, single_gpu=True)),
        ("--tf_xla_min_cluster_size=4", "tf_xla_min_cluster_size", 4),
        ("--tf_xla_max_cluster_size=9", "tf_xla_max_cluster_size", 9),
        ("--tf_xla_clustering_debug", "tf_xla_clustering_debug", True),
        ("--tf_xla_clustering_debug=false", "tf_xla_clustering_debug", False),
        ("--tf_xla_cpu_global_jit", "tf_xla_cpu_global_jit", True),
        ("--tf_xla_clustering_fuel=3", "tf_xla_clustering_fuel", 3),
        ("--tf_xla_ops_to_cluster=PW,MatMul", "tf_xla_ops_to_cluster", ("PW", "MatMul")),
        ("--tf_xla_cluster_exclude_ops=Exp", "tf_xla_cluster_exclude_ops", ("Exp",)),
        ("--tf_xla_enable_lazy_compilation=0", "tf_xla_enable_lazy_compilation", False),
        ("--tf_xla_fusion_only=1", "tf_xla_fusion_only", True),
        ("--xla_hlo_graph_path=/here", "xla_hlo_graph_path", "/here"),
        ("--xla_dump_to=/there", "xla_dump_to", "/there"),
    ],
)
@pytest.mark.parametrize("variable", ["tf", "xla"])
def test_2_8_a_flag_is_known_in_both_variables(text, name, value, variable):
    found = flags(**{variable: f" {text}  "})
    assert getattr(found, name) == value and found.given == {name}


def test_2_8_defaults_are_the_contracts():
    found = flags()
    assert not found.given and found.tf_xla_auto_jit == AutoJit(0)
    assert (found.tf_xla_min_cluster_size, found.tf_xla_max_cluster_size) == (2, 2**31 - 1)
    assert found.tf_xla_clustering_fuel == 2**63 - 1 and found.tf_xla_enable_lazy_compilation
    assert found.or_given("tf_xla_min_cluster_size", 1) == 1
    assert flags("--tf_xla_min_cluster_size=2").or_given("tf_xla_min_cluster_size", 1) == 2


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("--tf_xla_auto_jitt=2", "--tf_xla_auto_jit"),
        ("tf_xla_auto_jit=2", "unknown flag"),
        ("--tf_xla_auto_jit=3", "levels"),
        ("--tf_xla_auto_jit=on", "single-gpu(N)"),
        ("--tf_xla_min_cluster_size=two", "whole number"),
        ("--tf_xla_min_cluster_size=0", "from 1"),
        ("--tf_xla_min_cluster_size", "it has a value"),
        ("--tf_xla_max_cluster_size=4294967296", "to 2147483647"),
        ("--tf_xla_clustering_debug=maybe", "true or false"),
        ("--xla_generate_hlo_graph=[", "regular expression"),
    ],
)
def test_2_8_what_is_no_flag_is_an_error_that_names_the_variable(text, fragment):
    with pytest.raises(OptionError) as caught:
        flags(xla=text)
    assert fragment in str(caught.value) and "environment variable XLA_FLAGS" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "--xla_gpu_force_compilation_parallelism=2",
        "--xla_force_host_platform_device_count=many", "/etc/xla_flags",
    ],
)  # fmt: skip
def test_what_other_libraries_read_in_xla_flags_is_a_warning(text):
    with pytest.warns(UserWarning, match="XLA_FLAGS.*jitlab ignores it"):
        found = flags("--tf_xla_min_cluster_size=3", text)
    assert found.tf_xla_min_cluster_size == 3
    with pytest.raises(OptionError):
        flags(tf=text)


def test_2_8_flags_are_read_anew_when_the_environment_changes(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_min_cluster_size=3")
    first = read_flags()
    assert first.tf_xla_min_cluster_size == 3 and read_flags() is first
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_min_cluster_size=5")
    assert read_flags().tf_xla_min_cluster_size == 5


def test_2_8_each_flag_does_something_or_says_why_not():
    for f in KNOWN.values():
        assert bool(f.metadata["effect"]) != bool(f.metadata["nothing"]), f.name


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this copy")
def test_the_page_has_the_table_of_flags():
    """`python -c "from jitlab.flags import table; print(table())"` is what belongs at the end of docs/reference/flags.md."""
    assert PAGE.read_text(encoding="utf-8").endswith(table())
