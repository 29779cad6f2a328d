"""Starts JupyterLab for the browser tests in a folder of its own, with settings of its own."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent


def main(port: str, *settings: str) -> None:
    with tempfile.TemporaryDirectory(prefix="jitlab-browser-", ignore_cleanup_errors=True) as root:
        serve(port, Path(root), *settings)


def serve(port: str, root: Path, *settings: str) -> None:
    work = root / "work"
    shutil.copytree(HERE / "work", work)
    for original, copy in (("live", "seven"), ("shell", "shell7")):
        shutil.copy(work / f"{original}.ipynb", work / f"{copy}.ipynb")  # a kernel belongs to a path
    shutil.copytree(REPOSITORY / "extension" / "test" / "fixtures", work / "fixtures")
    shutil.copytree(REPOSITORY / "notebooks", work / "notebooks")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JITLAB_CACHE_DIR"):
        os.environ[name] = str(root / name.lower())
    kept = root / "jupyter_config_dir" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    kept.mkdir(parents=True)
    (kept / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), str(work)])

    from jupyterlab.labapp import main as run  # reads the variables above when it is imported

    run(
        [
            "--no-browser",
            "--allow-root",
            f"--port={port}",
            "--ServerApp.port_retries=0",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.root_dir={work}",
            "--IdentityProvider.token=",
            "--ServerApp.disable_check_xsrf=True",
            "--log-level=ERROR",
            "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.news_url=None",
            *settings,
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
