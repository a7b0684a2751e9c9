"""The list of differences on purpose, known.md."""

import re
from fnmatch import fnmatchcase


def load(path):
    """The rows of the tables: file, task, and keys, which are patterns of the shell; and a reason."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[1] != "task" and not set(cells[0]) <= {"-", ":"}:
            entries.append(tuple(cell.replace("\\|", "|") for cell in cells))
    return Known(entries)


def explains(entry, difference):
    file, task, keys, _ = entry
    told = fnmatchcase(difference.file, file) and fnmatchcase(difference.task, task)
    return told and any(fnmatchcase(difference.key, key) for key in keys.split())


class Known:
    def __init__(self, entries):
        self.entries = entries

    def sift(self, differences, files, whole):
        """The differences that no row explains, and the rows that explain none: of these files, or of all if they are the whole."""
        used, unexplained = set(), []
        for difference in differences:
            row = next((entry for entry in self.entries if explains(entry, difference)), None)
            if row:
                used.add(row)
            else:
                unexplained.append(difference)
        unused = [entry for entry in self.entries if entry not in used and (whole or entry[0] in files)]
        return unexplained, [": ".join(entry[:3]) for entry in unused]
