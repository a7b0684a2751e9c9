"""What the helpers share that run inside a virtual environment of ansible-core: its loader, values as JSON, errors as recorded."""

import json
import pathlib
import sys

import ansible.release
from ansible.plugins.loader import init_plugin_loader

VERSION = ansible.release.__version__
NATIVE = tuple(map(int, VERSION.split(".")[:2])) >= (2, 19)
HERE = pathlib.Path(__file__).resolve().parent
# what lookups find by a relative path
FILES = HERE.parent / "files"

init_plugin_loader([])


def plain(value):
    """A value as JSON; what has no JSON is its text and its type."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return {"__type__": type_name(value), "__str__": str(value)}


def type_name(value):
    for known in (bool, str, int, float, dict, list, tuple):
        if isinstance(value, known):
            return known.__name__
    return "none" if value is None else type(value).__name__.replace("_AnsibleTagged", "").lower()


def error(failure):
    # object addresses differ in every run
    message = str(failure).split("\n")[0].split(" at 0x")[0]
    message = message.replace(str(FILES), "@PLAYBOOK_DIR@")
    return {"error": type(failure).__name__, "message": message[:200]}


def serve(answer):
    """Reads a JSON document, writes the answer to it."""
    request = json.load(sys.stdin)
    out, sys.stdout = sys.stdout, sys.stderr
    answers = answer(request)
    json.dump(answers, out, ensure_ascii=False)
