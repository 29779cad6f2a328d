"""Object code: compiled, loaded, kept on disk and never trusted when damaged."""

import ctypes
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jitlab.config import cache_folder
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.machine import ObjectCache

TEXT = """
define i64 @answer(i64 %x) {
  %y = mul i64 %x, 6
  ret i64 %y
}
"""


def answer(loaded):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address("answer"))(7)


@pytest.mark.parametrize("tier", ["quick", "good"])
def test_code_runs(tier):
    assert answer(machine.load(machine.compile_object(TEXT, tier), ["answer"])) == 42


def test_equal_names_do_not_meet():
    loaded = [machine.load(machine.compile_object(TEXT.replace("6\n", f"{k}\n")), ["answer"]) for k in range(3)]
    assert [answer(code) for code in loaded] == [0, 7, 14]


def test_code_calls_what_it_imports():
    text = "declare i64 @other(i64)\ndefine i64 @answer(i64 %x) {\n %y = call i64 @other(i64 %x)\n ret i64 %y\n}\n"
    other = machine.load(machine.compile_object(TEXT), ["answer"])
    code = machine.load(machine.compile_object(text), ["answer"], {"other": other.address("answer")})
    assert answer(code) == 42


def test_wrong_text_says_so():
    with pytest.raises(RuntimeError, match="expected"):
        machine.compile_object("define nonsense")


def test_text_and_assembly_can_be_shown():
    assert "@answer" in machine.optimized(TEXT) and "answer" in machine.asm(TEXT)


def test_import_leaves_llvm_alone():
    code = "import sys, jitlab.targets.llvm.vector_emitter; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "kept")


def test_an_object_is_compiled_once(cache, tmp_path):
    body, found = cache.compile(TEXT)
    assert not found
    assert ObjectCache(tmp_path / "kept").compile(TEXT) == (body, True)
    assert answer(machine.load(body, ["answer"])) == 42


def test_tier_and_text_are_part_of_the_key(cache):
    keys = {cache.key(TEXT, "quick"), cache.key(TEXT, "good"), cache.key(TEXT + " ", "good")}
    assert len(keys) == 3


@pytest.mark.parametrize("damage", [b"", b"jitlab object 1\n", b"other " * 20, None])
def test_a_damaged_file_is_replaced(cache, damage):
    body, _ = cache.compile(TEXT)
    (path,) = Path(cache.folder).iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"!" if damage is None else damage)
    assert cache.compile(TEXT) == (body, False)
    assert path.read_bytes() == content


def test_one_object_does_not_pass_for_another(cache):
    cache.write("first", b"code")
    os.rename(Path(cache.folder) / "first.o", Path(cache.folder) / "second.o")
    assert cache.read("second") is None


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_nobody_else_can_read_or_write(cache):
    cache.write("key", b"code")
    assert stat.S_IMODE(Path(cache.folder).stat().st_mode) == 0o700
    assert stat.S_IMODE((Path(cache.folder) / "key.o").stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_folder_others_may_write_is_not_used(tmp_path):
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects").chmod(0o777)
    cache = ObjectCache(tmp_path)
    cache.write("key", b"code")
    assert cache.folder is None and cache.read("key") is None and not list((tmp_path / "objects").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_links_are_not_followed(cache, tmp_path):
    cache.write("key", b"code")
    os.rename(Path(cache.folder) / "key.o", tmp_path / "elsewhere")
    (Path(cache.folder) / "key.o").symlink_to(tmp_path / "elsewhere")
    assert cache.read("key") is None
    (tmp_path / "objects").symlink_to(cache.folder)
    assert ObjectCache(tmp_path).folder is None


def test_a_folder_that_cannot_be_made_is_no_cache(tmp_path):
    (tmp_path / "file").write_text("")
    assert ObjectCache(tmp_path / "file").compile(TEXT)[1] is False


def test_the_least_recently_used_go_first(tmp_path):
    cache = ObjectCache(tmp_path)
    for k in range(4):
        cache.write(f"key{k}", bytes(1000))
        os.utime(Path(cache.folder) / f"key{k}.o", (1000 * k, 1000 * k))
    assert cache.read("key0") is not None  # and so used last
    cache.limit_bytes = 3600
    cache.trim()
    assert [k for k in range(4) if cache.read(f"key{k}") is not None] == [0, 2, 3]


def test_a_folder_is_looked_through_only_when_it_may_be_full(tmp_path, monkeypatch):
    cache, looked = ObjectCache(tmp_path, limit_bytes=400_000), []
    files = ObjectCache._files
    monkeypatch.setattr(ObjectCache, "_files", lambda self: looked.append(1) or files(self))
    for k in range(600):
        cache.write(f"key{k}", bytes(1000))
        if k % 100 == 99:
            assert sum(path.stat().st_size for path in Path(cache.folder).iterdir()) <= 401_100
    assert len(looked) < 60
    assert len(list(Path(cache.folder).iterdir())) > 330


def test_the_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("JITLAB_CACHE_DIR", str(tmp_path))
    assert cache_folder() == str(tmp_path)
    monkeypatch.setenv("JITLAB_CACHE_DIR", "")
    assert cache_folder() is None
    monkeypatch.delenv("JITLAB_CACHE_DIR")
    assert Path(cache_folder()).name in ("jitlab", "cache")


def test_threads_compile_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    def make(k):
        return answer(machine.load(machine.compile_object(TEXT.replace("6\n", f"{k}\n")), ["answer"]))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(20))) == list(np.arange(20) * 7)
