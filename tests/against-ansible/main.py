"""Runs the task files on both sides and says what differs."""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare
import hosts
import known
import peer
import tree

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def main():
    # hosts are taken down whatever ends this
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    options = arguments()
    binary = Path(options.binary).resolve()
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} is missing: cargo build")
    files = sorted(path.stem for path in (HERE / "tasks").glob("*.yml"))
    unknown = set(options.names) - set(files)
    if unknown:
        sys.exit(f"no such task file: {', '.join(sorted(unknown))}")
    names = options.names or files
    exceptions = known.load(HERE / "known.md")

    started = time.monotonic()
    step = lambda text: print(f"[{time.monotonic() - started:3.0f}s] {text}", flush=True)
    ansible = peer.install(TARGET / "against-ansible")
    root = hosts.root()
    step("Ansible and the root of the hosts are there")
    scratch = Path(tempfile.mkdtemp(prefix="against-ansible."))
    kept = Kept(options.record, root)
    told = {name: kept.load(name) for name in names}
    left = [name for name in names if told[name] is None]
    with hosts.Hosts(root, scratch) as fleet:
        for side, wanted in (("ansible", left), ("trimtab", names)):
            for name in wanted:
                fleet.start(side, name, first_process(name))
        fleet.wait()
        step(f"{len(left) + len(names)} hosts are up")
        results = run_ansible(ansible, fleet, scratch, left) if left else {}
        for name in left:
            told[name] = outcome(fleet, scratch, "ansible", name, *results[name])
            kept.save(name, told[name])
        step("Ansible has run")
        results = run_trimtab(binary, fleet, scratch, names)
        step("trimtab has run")
        found = {name: outcome(fleet, scratch, "trimtab", name, *results[name]) for name in names}

    tasks, problems, differences = 0, [], []
    for name in names:
        theirs, mine = told[name], found[name]
        problems += [side["problem"] for side in (theirs, mine) if side["problem"]]
        tasks += len({record["task"]["path"] for record in theirs["results"]})
        differences += compare.results(name, theirs, mine)
        differences += tree.compare(name, root, theirs["tree"], mine["tree"])
        differences += tree.compare_fetched(name, theirs["fetched"], mine["fetched"])
    if options.keep:
        print(f"kept {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)

    unexplained, unused = exceptions.sift(differences, names, whole=names == files)
    for (file, task), group in itertools.groupby(unexplained, lambda difference: (difference.file, difference.task)):
        print(f"{file}: {task}")
        for difference in group:
            print(difference)
    for problem in problems:
        print(problem)
    for entry in unused:
        print(f"known.md: {entry}: this differs no more")
    tasks_of = lambda differences: {(difference.file, difference.task) for difference in differences}
    failed = tasks_of(unexplained)
    step(f"{tasks} tasks compared, {len(tasks_of(differences) - failed)} of them differ on purpose")
    failed = failed | {("known.md", entry) for entry in unused}
    print(f"{tasks - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or problems else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="task files, without `.yml`")
    parser.add_argument("--binary", default=TARGET / "debug/trimtab", help="the trimtab that is tested")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep there what Ansible gave, and use what is there")
    parser.add_argument("--keep", action="store_true", help="keep the scratch directory: what both recorded")
    return parser.parse_args()


def first_process(name):
    """A task file that begins with `# host: systemd` gets a host with systemd."""
    with open(HERE / "tasks" / f"{name}.yml", encoding="utf-8") as file:
        return "systemd" if file.readline().startswith("# host: systemd") else "sshd"


class Kept:
    """What Ansible gave for a task file, for as long as neither the tasks nor the root have changed."""

    def __init__(self, folder, root):
        self.folder = folder
        self.root = root.name
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def place(self, name):
        beside = [path for part in ("files", "templates", "included") for path in (HERE / "tasks" / part).rglob("*")]
        files = [HERE / "tasks" / f"{name}.yml", *sorted(path for path in beside if path.is_file())]
        text = self.root.encode() + b"".join(path.read_bytes() for path in files)
        return self.folder / f"{name}-{hashlib.sha256(text).hexdigest()[:12]}.json"

    def load(self, name):
        if self.folder and self.place(name).exists():
            return json.loads(self.place(name).read_text())
        return None

    def save(self, name, told):
        if self.folder and not told["problem"]:
            self.place(name).write_text(json.dumps(told))


def outcome(fleet, scratch, side, name, results, problem):
    """All that one side gave for one task file."""
    return {
        "results": [record for record in results if record["host"] == name],
        "problem": problem,
        "words": fleet.words(side, name),
        "tree": tree.written(fleet.upper(side, name), fleet.lower),
        "fetched": tree.fetched(scratch / side / "out" / name),
    }


def write_side(scratch, side, fleet, names):
    """Inventory, a copy of the task files, and a playbook for each."""
    folder = scratch / side
    shutil.copytree(HERE / "tasks", folder / "tasks", symlinks=True)
    (folder / "out").mkdir()
    (folder / "inventory.json").write_text(json.dumps(fleet.inventory(side, names)))
    for name in names:
        play = {
            "name": name,
            "hosts": name,
            "gather_facts": False,
            "vars": {"out": str(folder / "out" / name)},
            "tasks": [{"import_tasks": f"tasks/{name}.yml"}],
        }
        (folder / f"{name}.yml").write_text(json.dumps([play], indent=1))
    return folder


def plain_environment():
    """No setting of whoever runs this."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "TRIMTAB_"))}


def run_ansible(ansible, fleet, scratch, names):
    folder = write_side(scratch, "ansible", fleet, names)

    def run(name):
        record = folder / f"{name}.jsonl"
        program = [ansible.program("ansible-playbook"), "-i", folder / "inventory.json", folder / f"{name}.yml"]
        return run_side(program, folder, ansible.environment(folder, record), record, None)

    return in_parallel(run, names, 3)


def run_trimtab(binary, fleet, scratch, names):
    folder = write_side(scratch, "trimtab", fleet, names)

    def run(name):
        record = folder / f"{name}.jsonl"
        program = [binary, "play", "--output", "jsonl", "-i", folder / "inventory.json", folder / f"{name}.yml"]
        with open(record, "wb") as output:
            return run_side(program, folder, {"HOME": str(folder)}, record, output)

    return in_parallel(run, names, 2)


def in_parallel(run, names, workers):
    """The results of each file, and what went wrong; long files are begun first."""
    longest_first = sorted(names, key=lambda name: (HERE / "tasks" / f"{name}.yml").stat().st_size, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return dict(zip(longest_first, pool.map(run, longest_first)))


def run_side(command, folder, environment, record, output):
    """Runs one side on one file; what it prints besides is beside its record."""
    log = record.with_suffix(".log")
    with open(log, "wb") as errors:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=plain_environment() | environment,
            stdin=subprocess.DEVNULL,
            stdout=output or errors,
            stderr=errors,
            check=False,
        )
    results = load(record)
    if ended.returncode == 0:
        return results, None
    last = [f"{result['task']['name']}: {json.dumps(result['result'])[:500]}" for result in results[-1:]]
    said = log.read_text(errors="replace")[-3000:]
    return results, "\n".join([f"{command[0].name} {record.stem} ended with {ended.returncode}:", *last, said])


def load(record):
    """The results of a record."""
    if not record.exists():
        return []
    events = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return [event for event in events if event["event"] == "result"]


if __name__ == "__main__":
    sys.exit(main())
