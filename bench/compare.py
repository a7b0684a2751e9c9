"""Runs commands again and again and says how long they took: medians, spread, memory. Used by bench/*/run."""

import argparse
import filecmp
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


class Measured:
    """The runs of one command: wall time, CPU time (seconds), peak memory (MiB), and a file with what it printed.

    What it printed stays out of memory: a child's peak begins with that of its parent.
    """

    def __init__(self):
        self.wall, self.cpu, self.memory = [], [], []
        self.output = tempfile.NamedTemporaryFile()

    def run(self, command, directory):
        with tempfile.TemporaryFile() as err:
            self.output.truncate(0)
            self.output.seek(0)
            begin = time.monotonic()
            process = subprocess.Popen(command, cwd=directory, stdout=self.output, stderr=err, stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            self.wall.append(time.monotonic() - begin)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                err.seek(0)
                sys.exit(f"{' '.join(command)}: exit code {process.returncode}\n{err.read().decode()}")
        self.cpu.append(usage.ru_utime + usage.ru_stime)
        self.memory.append(usage.ru_maxrss / 1024)

    def row(self):
        """wall median, its least and most, CPU median, peak memory"""
        wall = f"{seconds(statistics.median(self.wall))} | {seconds(min(self.wall))}–{seconds(max(self.wall))}"
        return f"{wall} | {seconds(self.median_cpu())} | {max(self.memory):.0f}"

    def median_cpu(self):
        return statistics.median(self.cpu)


def seconds(value):
    """Three digits that count."""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def measure(commands, runs, directory="."):
    """Runs each of `commands` (name -> argv) `runs[name]` times, in turns so that a busy machine hits all alike."""
    measured = {name: Measured() for name in commands}
    for turn in range(max(runs[name] for name in commands)):
        for name, command in commands.items():
            if turn < runs[name]:
                measured[name].run(command, directory)
    return measured


def machine():
    """The machine in one line."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        found = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    model = found.group(1) if found else platform.machine()
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} × {model}, {platform.system()} {platform.release()}, load before: {load:.1f}"


def version(command):
    """The first line of what a program says of its version."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def options(sizes, what):
    """The command line of a benchmark."""
    parser = argparse.ArgumentParser()
    program = pathlib.Path(__file__).resolve().parents[1] / "target/release/trimtab"
    parser.add_argument("--trimtab", default=str(program), help="default: target/release/trimtab")
    parser.add_argument("--ansible", default="", help="the directory of Ansible's programs; default: the search path")
    parser.add_argument("--runs", type=int, default=5, help="of trimtab")
    parser.add_argument("--ansible-runs", type=int, default=3)
    parser.add_argument("sizes", type=int, nargs="*", default=sizes, metavar=what.upper())
    return parser


def programs(given):
    """trimtab, and the directory of Ansible's programs."""
    os.environ.pop("ANSIBLE_CONFIG", None)
    return str(pathlib.Path(given.trimtab).resolve()), pathlib.Path(given.ansible)


def heading(name, given, trimtab, ansible):
    """Prints the machine, the versions and the command."""
    print(f"- machine: {machine()}")
    print(f"- {version([trimtab, '--version'])} beside {version([str(ansible / 'ansible'), '--version'])}")
    print(f"- command: `{shlex.join([name, *(str(size) for size in given.sizes)])}`")
    print(f"- {given.runs} runs of trimtab, {given.ansible_runs} of Ansible (fewer of what takes minutes), in turns; wall and CPU times are medians\n")


def ratio(ours, theirs):
    """How many times faster, and whether both printed the same."""
    times = statistics.median(theirs.wall) / statistics.median(ours.wall)
    if filecmp.cmp(ours.output.name, theirs.output.name, shallow=False):
        same = "yes"
    elif sorted_lines(ours) == sorted_lines(theirs):
        same = "in another order"
    else:
        same = "**no**"
    return f"{times:.0f} × | {same}"


def sorted_lines(measured):
    """A digest of the lines that were printed, whatever their order."""
    lines = subprocess.Popen(["sort", measured.output.name], env={"LC_ALL": "C"}, stdout=subprocess.PIPE)
    return subprocess.run(["sha256sum"], stdin=lines.stdout, capture_output=True, check=True).stdout
