"""Equal hosts, two for each task file: an overlay over one root, namespaces of its own, a real sshd."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path("/var/cache/trimtab-against-ansible")
CGROUPS = Path("/sys/fs/cgroup/systemd")
SIDES = {"ansible": 1, "trimtab": 2}


def root():
    """The root that all hosts share, built if what it is made from has changed."""
    made_from = b"".join((HERE / name).read_bytes() for name in ("packages", "root-build"))
    built = CACHE / f"root-{hashlib.sha256(made_from).hexdigest()[:16]}"
    if not built.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.iterdir():
            shutil.rmtree(old)
        partial = built.with_suffix(".new")
        log = CACHE.parent / "trimtab-against-ansible.log"
        with open(log, "wb") as output:
            done = subprocess.run([HERE / "root-build", partial], stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        if done.returncode != 0:
            sys.exit(f"the root of the hosts could not be built:\n{log.read_text(errors='replace')[-2000:]}")
        partial.rename(built)
    return built


class Hosts:
    """The hosts of a run: all below one tmpfs, all gone at the end."""

    def __init__(self, lower, scratch):
        self.lower = lower
        self.folder = scratch / "hosts"
        self.scratch = scratch
        self.running = {}
        self.addresses = {}
        self.groups = []

    def __enter__(self):
        self.folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "against-ansible", self.folder], check=True)
        copy_sysctls(self.folder / "sysctl")
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            # unshare, as a parent of a namespace, ignores SIGTERM
            process.send_signal(signal.SIGKILL)
        for process in self.running.values():
            process.wait()
        for group in self.groups:
            remove_group(group)
        # what a host wrote is compared; `--keep` keeps what was recorded
        subprocess.run(["umount", "--lazy", self.folder], check=True)

    def directory(self, side, name):
        return self.folder / f"{name}-{side}"

    def upper(self, side, name):
        return self.directory(side, name) / "upper"

    def start(self, side, name, first):
        directory = self.directory(side, name)
        for part in ("upper", "work", "root", "sysctl", "sysctl-work"):
            (directory / part).mkdir(parents=True, mode=0o755)
        address = f"127.78.{SIDES[side]}.{sum(other == side for other, _ in self.running) + 1}"
        self.addresses[side, name] = address
        command = []
        if first == "systemd":
            # a group of its own, which its cgroup namespace begins at
            group = CGROUPS / f"against-ansible-{os.getpid()}-{name}-{side}"
            group.mkdir()
            self.groups.append(group)
            command = ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group]
        command += ["unshare", *(["--cgroup"] if first == "systemd" else []), "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        command += [HERE / "host-boot", directory, self.lower, address, first]
        with open(directory / "log", "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.running[side, name] = process

    def wait(self):
        """Until each host's sshd greets."""
        deadline = time.monotonic() + 60
        for (side, name), process in self.running.items():
            while not greets(self.addresses[side, name]):
                if process.poll() is not None or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
            else:
                continue
            log = (self.directory(side, name) / "log").read_text(errors="replace")
            sys.exit(f"the host {name} does not come up: {log[-2000:]}")

    def inventory(self, side, names):
        """An inventory in which a host has the same name on both sides."""
        known_hosts = self.scratch / "known_hosts"
        key = (self.lower / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
        known_hosts.write_text("".join(f"{address} {' '.join(key)}\n" for address in self.addresses.values()))
        # of the settings of whoever runs this, the locale too, nothing gets through
        options = f"-F none -o UserKnownHostsFile={known_hosts} -o KexAlgorithms=curve25519-sha256"
        return {
            "all": {
                "hosts": {name: {"ansible_host": self.addresses[side, name]} for name in names},
                "vars": {
                    "ansible_user": "root",
                    "ansible_ssh_private_key_file": str(self.lower / "srv/id_ed25519"),
                    "ansible_ssh_common_args": options,
                    "ansible_python_interpreter": "/usr/bin/python3",
                },
            }
        }

    def words(self, side, name):
        """What is another text on the other side by how the hosts are made, and what both are called then."""
        return {self.addresses[side, name]: "ADDRESS", str(self.scratch / side): "CONTROLLER"}


def remove_group(group):
    """Groups go from the innermost outwards, once the processes in them are gone."""
    for folder, _, _ in os.walk(group, topdown=False):
        for _ in range(50):
            try:
                os.rmdir(folder)
                break
            except OSError:
                time.sleep(0.02)


def greets(address):
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def copy_sysctls(copy):
    """The machine's sysctls as plain files, for hosts to write."""
    for folder, _, files in os.walk("/proc/sys"):
        (copy / Path(folder).relative_to("/proc/sys")).mkdir(parents=True, exist_ok=True)
        for file in files:
            source = Path(folder) / file
            place = copy / source.relative_to("/proc/sys")
            try:
                content = source.read_bytes()
            except OSError:
                content = b""
            place.write_bytes(content)
            place.chmod(source.stat().st_mode & 0o777)
