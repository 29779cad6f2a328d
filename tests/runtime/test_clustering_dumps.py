"""`--tf_xla_clustering_debug`: the graph before and after clustering, and annotated."""

import itertools
import re

import numpy as np
import pytest

import jitlab as jl
from jitlab.runtime import clustering_dumps
from tests.cluster.cluster_graphs import SESSION, clustered, making


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(clustering_dumps, "_numbers", itertools.count())
    monkeypatch.setenv("TF_XLA_FLAGS", f"--tf_xla_clustering_debug --xla_hlo_graph_path={tmp_path}")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    return tmp_path


def labels(path):
    return set(re.findall(r'^ +n\d+ \[label="\w+ ([^\\"]+)', path.read_text(), re.MULTILINE))


def test_2_8_three_graphs_are_written_the_last_with_names_that_say_the_cluster(folder, capsys):
    with making() as g:
        y = g.host(g.cos(g.sin(g.x)))
        clustering = clustered(g, y, options=SESSION)
    name = clustering.clusters[0].name
    before, after, annotated = clustering_dumps.dump_clustering(clustering, "f")
    assert [path.stem for path in (before, after, annotated)] == list(clustering_dumps.STAGES)
    assert labels(before) == {"x", "sin", "cos", "noloop"}
    assert labels(after) == {"x", f"sin _XlaCluster={name}", f"cos _XlaCluster={name}", "noloop"}
    assert labels(annotated) == {"unclustered/x", f"{name}/sin", f"{name}/cos", "unclustered/noloop"}
    assert capsys.readouterr().out.splitlines()[0] == f"graph f [before_mark_for_compilation]: {before}"
    assert clustering_dumps.dump_clustering(clustering, "f")[0].name == "before_mark_for_compilation_1.dot"


def test_2_8_nothing_is_written_without_the_flag(folder, monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", f"--xla_hlo_graph_path={folder}")
    jl.function(lambda x: np.sin(x))(np.ones(3))
    assert not list(folder.iterdir())


def test_2_8_a_function_that_is_captured_writes_its_graph(folder, capsys):
    jl.function(lambda x: np.sin(x) + 1)(np.ones(3))
    assert {path.stem for path in folder.iterdir()} == set(clustering_dumps.STAGES)
