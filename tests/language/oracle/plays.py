"""Runs playbooks with ansible-playbook: the results of each host, in their order, the recap and the exit code."""

import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PLAYS = HERE.parent / "plays"


def portable(value, directory):
    if isinstance(value, str):
        return value.replace(directory, "@PLAYBOOK_DIR@")
    if isinstance(value, dict):
        return {portable(key, directory): portable(item, directory) for key, item in value.items()}
    if isinstance(value, list):
        return [portable(item, directory) for item in value]
    return value


def results(lines):
    play, found = -1, []
    for line in lines:
        event = json.loads(line)
        match event.pop("event"):
            case "play":
                play += 1
            case "result":
                found.append({"play": play, **event})
            case "recap":
                found.append({"play": "end", "host": event["host"], "task": "recap", "status": "", "result": event["counts"]})
    # hosts end a task in any order
    hosts = sorted({case["host"] for case in found})
    number = lambda case: play + 1 if case["play"] == "end" else case["play"]
    return sorted(found, key=lambda case: (number(case), hosts.index(case["host"])))


def run(name):
    with tempfile.TemporaryDirectory() as scratch:
        directory = os.path.realpath(os.path.join(scratch, "plays"))
        shutil.copytree(PLAYS / name, directory)
        arguments = (PLAYS / name / "arguments").read_text().splitlines()
        told = os.path.join(scratch, "told")
        environment = {
            **os.environ,
            # jobs in the background are looked for there, whatever HOME says
            "HOME": pwd.getpwuid(os.getuid()).pw_dir,
            "TOLD": told,
            "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callback"),
            "ANSIBLE_STDOUT_CALLBACK": "told",
        }
        command = [pathlib.Path(sys.executable).parent / "ansible-playbook", "-vvv", *arguments]
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        lines = open(told).read().splitlines() if os.path.exists(told) else []
        if not lines:
            print(f"{name}: {done.stdout}{done.stderr}", file=sys.stderr)
        found = results(lines)
        found.append({"play": "end", "host": "", "task": "exit code", "status": "", "result": {"code": done.returncode}})
        return portable(found, directory)


request = json.load(sys.stdin)
json.dump([run(golden["plays"]) for golden in request], sys.stdout, ensure_ascii=False)
