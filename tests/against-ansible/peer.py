"""ansible-core in a virtual environment, and the two collections whose modules trimtab has."""

import subprocess
import venv
import zipfile
from pathlib import Path

CORE = "ansible-core==2.16.14"
# beside jinja2 and the like that pip chooses: what ansible-core takes if it is there
BESIDE = ("passlib==1.7.4",)
COLLECTIONS = "ansible==9.13.0"
WANTED = ("ansible_collections/ansible/posix/", "ansible_collections/community/general/")
HERE = Path(__file__).resolve().parent


def install(cache):
    """Installs what is not in the cache yet."""
    done = cache / f"{CORE}+{COLLECTIONS}".replace("==", "-")
    folder = cache / "venv"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        pip = [folder / "bin/pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--no-compile", CORE, *BESIDE], check=True)
        # 50 MB of which two collections are unpacked
        subprocess.run([*pip, "download", "--no-deps", "--dest", cache, COLLECTIONS], check=True)
        for wheel in cache.glob("ansible-9*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(cache, [name for name in archive.namelist() if name.startswith(WANTED)])
            wheel.unlink()
        done.touch()
    return Ansible(cache)


class Ansible:
    """An installed Ansible."""

    def __init__(self, cache):
        self.cache = cache.resolve()

    def program(self, name):
        return self.cache / "venv/bin" / name

    def environment(self, home, record):
        """The settings of a run: all at their defaults, but for what makes it fast and records it."""
        return {
            "HOME": str(home),
            "RECORD": str(record),
            "ANSIBLE_COLLECTIONS_PATH": str(self.cache),
            "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callbacks"),
            "ANSIBLE_STDOUT_CALLBACK": "record",
            "ANSIBLE_PIPELINING": "true",
            # with a terminal the output of `raw` and `script` holds carriage returns and words of ssh
            "ANSIBLE_SSH_USETTY": "false",
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_LOCAL_TEMP": str(home / "tmp"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(home / "cp"),
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "",
        }
