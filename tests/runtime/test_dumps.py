import itertools
import os
import re

import numpy as np
import pytest

import jitlab as jl
from jitlab import events
from jitlab.errors import ForeignFileError, OptionError
from jitlab.runtime import dumps
from jitlab.runtime.dumps import dump_cluster
from tests.report import report_samples as samples

BEFORE = "pipeline start, before inline"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(dumps, "_numbers", itertools.count())
    monkeypatch.setattr(dumps, "_versions", {})
    monkeypatch.setattr(dumps, "_next_version", itertools.count(1))
    monkeypatch.setenv("TF_XLA_FLAGS", f"--xla_generate_hlo_graph=.* --xla_hlo_graph_path={tmp_path}")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    return tmp_path


@pytest.fixture
def cluster():
    return samples.softmax_plan().clustering.clusters[0]


def test_nothing_happens_without_a_flag(cluster, monkeypatch, capsys):
    monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert dump_cluster(cluster, [(BEFORE, cluster.nodes)]) == []
    assert capsys.readouterr().out == ""


def test_each_stage_is_a_file_and_one_console_line(cluster, folder, capsys):
    stages = [(BEFORE, cluster.nodes), ("after inline, before fuse", "digraph G {\n}\n"), ("after fuse, pipeline end", "k0: 3")]
    heard = []
    with events.listen(heard.append):
        written = dump_cluster(cluster, stages)
    assert [path.name for path in written] == ["hlo_graph_0.dot", "hlo_graph_1.dot", "hlo_graph_2.dot"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "computation cluster_0[_XlaCompiledKernel=true,_XlaNumConstantArgs=0].v1 [CPU: pipeline start, before inline]: "
        f"{folder}/hlo_graph_0.dot"
    )
    assert len(lines) == 3
    assert [event.path for event in heard] == [str(path) for path in written]
    text = written[0].read_text()
    assert "cluster_0[" in text and "MatMul matmul" in text
    assert all(path.read_text().startswith("digraph G {") for path in written)
    for path in written:  # they are known as ours, and made again
        dumps.write_dump(path, path.read_text())


def test_numbers_go_on_and_a_cluster_keeps_its_version(cluster, folder, capsys):
    for _ in range(2):
        dump_cluster(cluster, [(BEFORE, cluster.nodes)])
    lines = capsys.readouterr().out.splitlines()
    assert [re.search(r"\.v(\d+) ", line)[1] for line in lines] == ["1", "1"]
    assert sorted(path.name for path in folder.iterdir()) == ["hlo_graph_0.dot", "hlo_graph_1.dot"]


@pytest.mark.parametrize("pattern, found", [("cluster_0", 1), ("uster", 1), ("^cluster_1", 0), (r"_0\[", 1)])
def test_pattern_matches_a_part_of_the_name(cluster, folder, monkeypatch, pattern, found):
    monkeypatch.setenv("TF_XLA_FLAGS", "")
    monkeypatch.setenv("XLA_FLAGS", f"--xla_generate_hlo_graph={pattern} --xla_hlo_graph_path={folder}")
    assert len(dump_cluster(cluster, [(BEFORE, cluster.nodes)])) == found


def test_a_bad_pattern_is_an_error_that_names_the_variable(cluster, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_generate_hlo_graph=[")
    with pytest.raises(OptionError, match="XLA_FLAGS"):
        dump_cluster(cluster, [])


def test_an_own_old_file_is_replaced(cluster, folder, monkeypatch):
    (old,) = dump_cluster(cluster, [(BEFORE, "digraph G { old }")])
    inode = old.stat().st_ino, old.read_text()
    monkeypatch.setattr(dumps, "_numbers", itertools.count())
    (new,) = dump_cluster(cluster, [(BEFORE, cluster.nodes)])
    assert new == old and (new.stat().st_ino, new.read_text()) != inode


def foreign_file(path):
    path.write_text("digraph G { my own work }")


def empty_file(path):
    path.touch()


def link_to_file(path):
    target = path.with_name("target")
    target.write_text(dumps.MARKER + "\n")
    path.symlink_to(target)


def dangling_link(path):
    path.symlink_to(path.with_name("nowhere"))


def folder_there(path):
    path.mkdir()


def pipe(path):
    os.mkfifo(path)


def marker_later(path):
    path.write_text("digraph G {}\n" + dumps.MARKER)


@pytest.mark.parametrize(
    "put", [foreign_file, empty_file, link_to_file, dangling_link, folder_there, pipe, marker_later], ids=lambda f: f.__name__
)
def test_what_jitlab_did_not_write_stays_and_is_named(cluster, folder, put):
    path = folder / "hlo_graph_0.dot"
    put(path)
    before = sorted((p.name, p.is_symlink(), p.read_text() if p.is_file() else "") for p in folder.iterdir())
    with pytest.raises(ForeignFileError, match=re.escape(str(path))):
        dump_cluster(cluster, [(BEFORE, cluster.nodes)])
    assert sorted((p.name, p.is_symlink(), p.read_text() if p.is_file() else "") for p in folder.iterdir()) == before


def test_a_file_of_another_user_stays(cluster, folder, monkeypatch):
    (folder / "hlo_graph_0.dot").write_text(dumps.MARKER + "\n")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ForeignFileError, match="another user"):
        dump_cluster(cluster, [(BEFORE, cluster.nodes)])


@pytest.mark.parametrize(
    "program, expected",
    [
        (lambda x: x * 2 + 1, 0),
        (lambda x: x.sum(axis=1) * x.max(axis=1), 1),
        (lambda x: x.sum(axis=1).sum(axis=0) * x.max(axis=1), 2),
        (lambda x: (x * 2).reshape(4, 3) + 1, 1),
    ],
    ids=["none", "an axis twice", "two axes", "a shape"],
)
def test_constant_arguments_are_the_axes_and_shapes_that_differ(folder, capsys, program, expected):
    jl.function(program)(np.ones((3, 4)))
    assert set(re.findall(r"_XlaNumConstantArgs=(\d+)", capsys.readouterr().out)) == {str(expected)}


def test_a_compiled_function_tells_every_stage_from_start_to_end(folder, capsys):
    jl.function(lambda x: np.tanh(x) * 2)(np.ones(5))
    lines = capsys.readouterr().out.splitlines()
    stages = [re.fullmatch(r"computation cluster_\d+\[.*\]\.v1 \[CPU: (.*)\]: (.*)", line).groups() for line in lines]
    assert stages == [
        ("pipeline start, before inline", f"{folder}/hlo_graph_0.dot"),
        ("after inline, before fuse", f"{folder}/hlo_graph_1.dot"),
        ("after fuse, pipeline end", f"{folder}/hlo_graph_2.dot"),
    ]
    assert all("digraph G {" in path.read_text() for path in folder.iterdir())
    assert "= Tanh " in (folder / "hlo_graph_2.dot").read_text()


def test_without_a_folder_dumps_go_to_the_temporary_one(cluster, folder, monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "--xla_generate_hlo_graph=.*")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    (written,) = dump_cluster(cluster, [(BEFORE, cluster.nodes)])
    assert written == folder / "hlo_graph_0.dot"


@pytest.mark.parametrize(
    "more, kinds", [("", ["txt"]), ("--xla_dump_hlo_as_text", ["txt"]), ("--xla_dump_hlo_as_dot", ["dot"]),
                    ("--xla_dump_hlo_as_text --xla_dump_hlo_as_dot=true", ["dot", "txt"])]
)  # fmt: skip
def test_newer_flags_write_the_first_and_the_last_stage_quietly(cluster, folder, monkeypatch, capsys, more, kinds):
    monkeypatch.delenv("TF_XLA_FLAGS")
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={folder / 'new'} {more}")
    for _ in range(2):  # what is there from before is replaced
        dump_cluster(cluster, [(BEFORE, cluster.nodes), ("after fuse, pipeline end", lambda: "k0: 3")])
    assert capsys.readouterr().out == ""
    names = ["before_optimizations", "cpu_after_optimizations"]
    found = sorted(path.name for path in (folder / "new").iterdir())
    assert found == sorted(f"module_0001.cluster_0.{name}.{kind}" for name in names for kind in kinds)
    text = (folder / "new" / f"module_0001.cluster_0.cpu_after_optimizations.{kinds[-1]}").read_text()
    assert "k0: 3" in text and "pipeline end" in text
