"""Inventories read in process: groups, variables, patterns."""

import pathlib
import tempfile

from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager
from common import error, plain, serve

# what is the same for every host, or depends on the machine
OF_THE_RUN = (
    "groups omit ansible_version playbook_dir ansible_playbook_python ansible_config_file inventory_dir inventory_file "
    "ansible_check_mode ansible_diff_mode ansible_forks ansible_inventory_sources ansible_skip_tags ansible_run_tags "
    "ansible_verbosity ansible_facts environment ansible_limit"
).split()


def load(directory, name, text):
    file = directory / name
    file.write_text(text)
    loader = DataLoader()
    inventory = InventoryManager(loader=loader)
    parsed = inventory.parse_source(str(file))
    inventory.reconcile_inventory()
    return parsed, inventory, VariableManager(loader=loader, inventory=inventory)


def whole(directory, case):
    """All variables of all hosts; patterns in the order of their hosts."""
    _, inventory, manager = load(directory, case["file"], case["text"])
    hosts = {}
    for host in inventory.get_hosts("all"):
        found = manager.get_vars(host=host)
        hosts[host.name] = {key: plain(value) for key, value in found.items() if key not in OF_THE_RUN}
    patterns = {}
    for pattern in case["patterns"]:
        try:
            patterns[pattern] = [host.name for host in inventory.get_hosts(pattern)]
        except Exception as failure:
            patterns[pattern] = error(failure)
    groups = {name: plain(hosts) for name, hosts in inventory.get_groups_dict().items()}
    return {"groups": groups, "hostvars": hosts, "patterns": patterns}


def generated(directory, case, asked):
    """Groups and patterns as sorted names; of an index only the number of hosts."""
    parsed, inventory, manager = load(directory, "h.ini", case["text"])
    if not parsed:
        return {}
    groups = {name: sorted(hosts) for name, hosts in inventory.get_groups_dict().items()}
    found = {}
    for host in inventory.get_hosts("all"):
        every = manager.get_vars(host=host)
        names = ("v", "w", "p", "ansible_port", "group_names")
        found[host.name] = {name: plain(every[name]) for name in names if name in every}
    patterns = {}
    for pattern in asked:
        try:
            hosts = [host.name for host in inventory.get_hosts(pattern)]
            patterns[pattern] = len(hosts) if "[" in pattern else sorted(hosts)
        except Exception:
            patterns[pattern] = None
    return {"groups": groups, "vars": found, "patterns": patterns}


def answer(golden, case):
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        try:
            if golden["kind"] == "inventories":
                return whole(directory, case)
            return generated(directory, case, golden["asked"])
        except Exception as failure:
            return {} if golden["kind"] != "inventories" else error(failure)


serve(lambda goldens: [[answer(golden, case) for case in golden["cases"]] for golden in goldens])
