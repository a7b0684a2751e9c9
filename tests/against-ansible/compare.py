"""Compares what both sides said of each task."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePath

# Said apart, or told by the status; `invocation` repeats the arguments; trimtab tells `exception` nowhere.
APART = {"invocation", "exception", "warnings", "deprecations", "failed", "skipped"}

# What no two runs have in common; that both have it is compared.
VARYING = {
    "start", "end", "delta", "elapsed", "atime", "mtime", "ctime", "inode", "dev", "ansible_job_id", "results_file", "block_size",
    "device_type", "blocks", "cache_update_time", "epoch", "epoch_int", "iso8601", "iso8601_basic", "iso8601_basic_short", "iso8601_micro",
    "year", "month", "day", "hour", "minute", "second", "time", "date", "weekday", "weekday_number", "weeknumber", "SSH_CLIENT", "SSH_CONNECTION", "ansible_memfree_mb", "ansible_swapfree_mb", "1m", "5m", "15m", "used", "free",
    "ansible_uptime_seconds", "block_available", "block_used", "size_available", "inode_available", "inode_used", "pid", "ppid", "async_dir",
}  # fmt: skip

# Lists in the order in which a file system or the kernel happened to give them.
UNORDERED = ("result.files", ".ansible_interfaces", ".ansible_all_ipv6_addresses", ".path_content.files", ".path_content.directories")

# What is compared of a failure; of these actions all of it.
FAILURES = {"changed", "attempts", "results", "unreachable"}
PACKAGES = {"apt", "package"}
PROGRAMS = {"command", "shell", "raw", "script"}

# Paths that are made up: Ansible's folders for temporary files, and names with random letters.
MADE_UP = [
    (re.compile(r"(/root/\.ansible/tmp|/var/tmp)/ansible-tmp-[0-9.-]+"), "TEMPORARY"),
    (re.compile(r"(/tmp|CONTROLLER)/(tmp/)?ansible-local-\w+/\w+"), "TEMPORARY"),
    (re.compile(r"\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~"), ".BACKUP~"),
    (re.compile(r"/tmp/ansible\.[a-z0-9_]{8}|(?<=/pre)[a-z0-9_]{8}(?=\.suf)"), "MADE-UP"),
    (re.compile(r"Paused for [0-9.]+ seconds"), "Paused"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
]
TEMPORARY = re.compile(r'"TEMPORARY[^ "]*"')


@dataclass(frozen=True)
class Difference:
    """What one task, or the tree of one file, gives on one side only."""

    file: str
    task: str
    key: str
    ansible: str
    trimtab: str

    def __str__(self):
        values = [value if len(value) < 300 else f"{value[:300]}..." for value in (self.ansible, self.trimtab)]
        separator = "\n        " if sum(map(len, values)) > 120 else "  "
        return f"    {self.key}:  ansible {values[0]}{separator}trimtab {values[1]}"


def results(file, ansible, trimtab):
    """The differences of the results of one file, in the order of Ansible's."""
    sides = [grouped(ansible["results"]), grouped(trimtab["results"])]
    found = []
    for key in [*sides[0], *(key for key in sides[1] if key not in sides[0])]:
        theirs, mine = sides[0].get(key, []), sides[1].get(key, [])
        name = (theirs or mine)[0]["task"]["name"] or (theirs or mine)[0]["task"]["action"]
        if len(theirs) != len(mine):
            found.append(Difference(file, name, "count", statuses(theirs), statuses(mine)))
            continue
        for their, my in zip(theirs, mine):
            flat = flatten(their, ansible["words"]), flatten(my | {"diff": their["diff"]}, trimtab["words"])
            for place in sorted(set(flat[0]) | set(flat[1])):
                values = [side.get(place, "(none)") for side in flat]
                if TEMPORARY.fullmatch(values[0]) and values[1] != "(none)":
                    # trimtab needs no temporary file there, and names what it took instead
                    continue
                if values[0] != values[1]:
                    if values[0] == "(none)":
                        # a value that Ansible does not have
                        place = f"+{place}"
                    found.append(Difference(file, name, place, *values))
    return found


def grouped(records):
    """The records of each task: by where it is written and what it is called, for one may be included twice."""
    groups = defaultdict(list)
    for record in records:
        if record["task"]["action"].rpartition(".")[2] == "meta":
            # only trimtab tells of these
            continue
        path, _, line = record["task"]["path"].rpartition(":")
        groups[PurePath(path).name, line].append(record)
    return groups


def statuses(records):
    return ", ".join(record["status"] for record in records) or "(did not run)"


def flatten(record, words):
    """What a record says, as texts by their place: `status`, `result.stat.mode`, `result.lines.0`."""
    status = record["status"]
    action = record["task"]["action"].rpartition(".")[2]
    body = {key: value for key, value in record["result"].items() if key not in APART}
    if status == "failed":
        # wording is free, and so is what a module tells besides; that there is a message is not
        told = [key for key in ("msg", "reason") if body.get(key)]
        body = {key: value for key, value in body.items() if key in FAILURES or action in PROGRAMS and key not in told}
        body.update({key: "(a message)" for key in told})
    if action == "debug":
        # reports show nothing else of it
        hidden = ("changed", "results", "skip_reason")
        body = {"msg": body["msg"]} if "msg" in body else {key: body[key] for key in body if key not in hidden}
    # what apt and its like print goes by the state of their locks and caches
    for key in ("stdout", "stderr", "stdout_lines", "stderr_lines") if action in PACKAGES else ():
        if body.get(key):
            body[key] = "(varies)"
    flat = {"status": status}
    if "item" in record:
        flat["item"] = replaced(record["item"], words)
    else:
        flat["ignored"] = str(bool(record.get("ignored")))
    differences = body.pop("diff", None)
    if record.get("diff"):
        differences = [shown(difference) for difference in (differences if isinstance(differences, list) else [differences])]
        body["diff"] = [difference for difference in differences if difference]
    into(flat, "result", body, words)
    return flat


def shown(difference):
    """A difference as it is shown: Ansible has texts, or maps that it shows as JSON; trimtab has texts."""
    if not difference:
        return None
    texts = {}
    for key, value in difference.items():
        if key in ("before", "after") and not isinstance(value, str):
            value = {inner: value[inner] for inner in value if inner not in VARYING}
            value = json.dumps(value, sort_keys=True, indent=4, separators=(",", ": ")) + "\n"
        if value:
            texts[key] = value
    return texts if "before" in texts or "after" in texts else None


def into(flat, place, value, words):
    if isinstance(value, dict) and value:
        if value.get("state") == "directory":
            # how big a directory is, is the file system's affair
            value = {key: inner for key, inner in value.items() if key != "size"}
        for key, inner in value.items():
            if key in ("invocation", "exception", "warnings", "deprecations", "diff") and place != "result" or str(key).startswith("_ansible_"):
                continue
            if key == "msg" and value.get("failed") is True:
                inner = "(a message)"
            key = replaced(str(key), words)
            if key in VARYING and not isinstance(inner, (dict, list)):
                flat[f"{place}.{key}"] = "(varies)"
            else:
                into(flat, f"{place}.{key}", inner, words)
    elif isinstance(value, list) and value:
        if place.endswith(UNORDERED):
            value = sorted(value, key=lambda inner: inner["path"] if isinstance(inner, dict) else str(inner))
        for number, inner in enumerate(value):
            into(flat, f"{place}.{number}", inner, words)
    else:
        flat[place] = replaced(json.dumps(value, ensure_ascii=False), words)


def replaced(text, words):
    for word, name in words.items():
        text = text.replace(word, name)
    for pattern, name in MADE_UP:
        text = pattern.sub(name, text)
    # bytes that are no UTF-8: Python keeps them as lone surrogates
    return re.sub("[\udc80-\udcff]", "\ufffd", text)
