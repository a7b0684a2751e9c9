"""Compares what both sides left in the file systems of their hosts."""

import hashlib
import os
import re
import stat
from collections import defaultdict
from pathlib import Path

from compare import Difference

# What programs write whoever calls them, and Ansible's own folders for its work.
LEFT_OUT = re.compile(
    r"^(root|home/\w+)/\.ansible(_async)?(/|$)"
    r"|^var/log(/|$)"
    r"|^var/cache/(apt|ldconfig|debconf)/"
    r"|^var/lib/(dpkg/(lock|triggers/Lock|.*-old$)|apt/lists/lock|systemd/(random-seed|timers/)|sudo/)"
    r"|^(run|proc|sys|dev|mnt)(/|$)"
    r"|^etc/ssh/sshd_config.d/address.conf$"
    r"|\.git/(logs(/|$)|index$)"
    r"|^(var/)?tmp/systemd-private-"
    r"|__pycache__"
    r"|^etc/(passwd|group|shadow|gshadow|subuid|subgid)-$"
)
# Names in which a time or random letters stand.
MADE_UP = [
    (re.compile(r"\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~"), ".BACKUP~"),
    (re.compile(r"(/ansible\.)[a-z0-9_]{8}"), r"\1RANDOM"),
]


def written(upper, lower):
    """What a host has at each path that was written: one line, or none if it is gone."""
    written = [path for path in paths(upper) if not LEFT_OUT.search(path)]
    places = {path: place for path in written if (place := find(path, upper, lower))}
    links = defaultdict(list)
    for path, place in places.items():
        status = place.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            links[status.st_dev, status.st_ino].append(path)
    entries = {}
    for path in sorted(written):
        name = path
        for pattern, made_up in MADE_UP:
            name = pattern.sub(made_up, name)
        entries[name] = describe(places[path], path, links) if path in places else None
    return entries


def fetched(folder):
    """What was written on the controller."""
    return {path: describe(folder / path, path, {}) for path in paths(folder)}


def compare(file, lower, ansible, trimtab):
    """The differences of what two hosts over the same lower directory have where either was written."""
    found = []
    for path in sorted(path for path in {*ansible, *trimtab} if not LEFT_OUT.search(path)):
        values = []
        for entries in (ansible, trimtab):
            below = lower / path
            untouched = describe(below, path, {}) if os.path.lexists(below) else None
            values.append(entries.get(path, untouched) or "(none)")
        if values[0] != values[1]:
            found.append(Difference(file, "tree", f"/{path}", *values))
    return found


def compare_fetched(file, ansible, trimtab):
    """The differences of what was written on the controller."""
    found = []
    for path in sorted({*ansible, *trimtab}):
        values = [side.get(path, "(none)") for side in (ansible, trimtab)]
        if values[0] != values[1]:
            found.append(Difference(file, "controller", path, *values))
    return found


def paths(folder):
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            yield os.path.relpath(os.path.join(place, name), folder)


def find(path, upper, lower):
    """Where a path of the host is: in its upper directory, or as it was in the lower one."""
    parts = Path(path).parts
    covered = False
    for depth in range(1, len(parts) + 1):
        part = upper.joinpath(*parts[:depth])
        if not os.path.lexists(part):
            below = lower / path
            return None if covered or not os.path.lexists(below) else below
        status = part.lstat()
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            return None
        covered = covered or is_opaque(part) or not stat.S_ISDIR(status.st_mode)
    return upper / path


def is_opaque(path):
    try:
        return os.getxattr(path, "trusted.overlay.opaque", follow_symlinks=False) == b"y"
    except OSError:
        return False


def describe(place, path, links):
    """Kind, mode, owner and content of a file in one line."""
    status = place.lstat()
    said = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if stat.S_ISLNK(status.st_mode):
        return f"{said} -> {os.readlink(place)}"
    if stat.S_ISREG(status.st_mode):
        content = place.read_bytes()
        others = [other for other in links.get((status.st_dev, status.st_ino), []) if other != path]
        linked = f" linked to {', '.join(others)}" if others else ""
        if path == "etc/shadow":
            # a password's salt is random
            content = re.sub(rb"(?m)^([^:]*:\$\w+\$)[^:]*", rb"\1SALTED", content)
        if path.startswith("var/spool/cron/"):
            content = re.sub(rb"(?m)^# .* installed on .*\n", b"", content)
        shown = repr(content.decode("utf-8", "replace")) if len(content) < 400 else hashlib.sha256(content).hexdigest()[:16]
        return f"{said} {len(content)} bytes: {shown}{linked}"
    return said
