"""Writes each result of a run of Ansible as one JSON object a line, in the form of trimtab's `--output jsonl`."""

import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: stdout
short_description: one JSON object a result
description: One JSON object a result, into the file that the variable RECORD names.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "record"

    def __init__(self):
        super().__init__()
        self.file = open(os.environ["RECORD"], "w", encoding="utf-8")

    def write(self, status, result, ignored=False):
        body = result._result
        task = result._task
        record = {
            "event": "result",
            "host": result._host.get_name(),
            "status": status,
            "task": {"name": task.get_name().strip(), "action": task.action, "path": task.get_path()},
            "ignored": ignored,
            "diff": bool(task.diff),
            "result": {key: value for key, value in body.items() if not key.startswith("_ansible_")},
        }
        if "_ansible_item_label" in body:
            record["item"] = str(body["_ansible_item_label"])
        self.file.write(json.dumps(record, default=str) + "\n")
        self.file.flush()

    def ok(self, result):
        self.write("changed" if result._result.get("changed") else "ok", result)

    v2_runner_on_ok = v2_runner_item_on_ok = ok

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.write("failed", result, ignore_errors)

    def v2_runner_item_on_failed(self, result):
        self.write("failed", result)

    def v2_runner_on_skipped(self, result):
        self.write("skipped", result)

    v2_runner_item_on_skipped = v2_runner_on_skipped

    def v2_runner_on_unreachable(self, result):
        self.write("unreachable", result)
