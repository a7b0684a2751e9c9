"""Tells a run as JSON lines, for plays.py: plays, results, the recap."""

import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: told
type: stdout
short_description: JSON lines
description: Tells a run as JSON lines to the file TOLD.
"""

# what differs in every run, or is only shown
VOLATILE = (
    "invocation start end delta cmd stdout_lines stderr_lines stderr exception warnings deprecations ansible_version "
    "ansible_job_id results_file failed_when_suppressed_exception atime mtime ctime inode dev skip_reason"
).split()


def slim(result, is_debug=False):
    """What of a result is compared; of debug only what it says."""
    if is_debug and isinstance(result.get("results"), list):
        return {"results": [slim(item, True) for item in result["results"]]}
    if is_debug and "msg" in result:
        return {"msg": result["msg"]}
    if is_debug:
        result = {name: value for name, value in result.items() if name not in ("changed", "failed", "skipped")}
    found = {}
    for name, value in result.items():
        if name in VOLATILE or name.startswith("_ansible") or (name == "discovered_interpreter_python"):
            continue
        if name == "results" and isinstance(value, list):
            value = [slim(item) if isinstance(item, dict) else item for item in value]
        if name == "ansible_facts" and isinstance(value, dict):
            value = {key: item for key, item in value.items() if key != "discovered_interpreter_python"}
            if not value:
                continue
        found[name] = value
    return found


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "told"

    def tell(self, **event):
        with open(os.environ["TOLD"], "a") as file:
            file.write(json.dumps(event, default=str) + "\n")

    def result(self, status, result, only=None):
        get = lambda name: getattr(result, f"_{name}", None) or getattr(result, name)
        task, host, found = get("task"), get("host"), get("result")
        action = task.action.rsplit(".", 1)[-1]
        if action == "meta":
            return
        if action in ("setup", "gather_facts") or action.startswith("include_"):
            # what the facts of this machine are does not matter, nor how an include is written
            found = {name: value for name, value in found.items() if name == "ansible_facts" and action == "include_vars"}
        found = slim(found, action == "debug")
        # the status says it
        kept = lambda name: name in only if only else name not in ("failed", "skipped")
        found = {name: value for name, value in found.items() if kept(name)}
        self.tell(event="result", host=host.get_name(), task=task.get_name(), status=status, result=found)

    def v2_playbook_on_play_start(self, play):
        self.tell(event="play")

    def v2_runner_on_ok(self, result):
        self.result("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.result("ignored" if ignore_errors else "failed", result)

    def v2_runner_on_skipped(self, result):
        self.result("skipped", result)

    def v2_runner_on_unreachable(self, result):
        # why is said by the SSH client, never twice the same
        self.result("unreachable", result, only=("unreachable",))

    def v2_playbook_on_stats(self, stats):
        for host in sorted(stats.processed):
            self.tell(event="recap", host=host, counts=stats.summarize(host))
