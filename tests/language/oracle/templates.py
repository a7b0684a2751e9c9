"""Evaluates templates and conditions in process: a list of goldens in, their results out."""

from common import FILES, NATIVE, error, plain, serve, type_name

from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import VaultSecret
from ansible.template import Templar

if NATIVE:
    from ansible.template import trust_as_template
else:
    from ansible.playbook.conditional import Conditional

LOADER = DataLoader()
LOADER.set_basedir(str(FILES))
# of files/sealed.txt
LOADER.set_vault_secrets([("default", VaultSecret(b"golden"))])


def written(value):
    """A value as a user wrote it: its texts may be templates."""
    if isinstance(value, str):
        value = value.replace("@PLAYBOOK_DIR@", str(FILES))
        return trust_as_template(value) if NATIVE else value
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    return value


def variables(golden, case):
    found = written({**golden["vars"], **case.get("vars", {})})
    if NATIVE:
        found["vars"] = found
    else:
        found["omit"] = "__omit_place_holder__"
        found["vars"] = dict(found)
    return found


def with_directory(value):
    """Paths below the directory of the playbook, without where that is."""
    if isinstance(value, str):
        return value.replace(str(FILES), "@PLAYBOOK_DIR@")
    if isinstance(value, dict):
        return {with_directory(key): with_directory(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_directory(item) for item in value]
    return value


def template(golden, case):
    templar = Templar(loader=LOADER, variables=variables(golden, case))
    value = templar.template(written(case["template"]))
    return {"value": with_directory(plain(value)), "type": type_name(value)}


def condition(golden, case):
    found = variables(golden, case)
    templar = Templar(loader=LOADER, variables=found)
    if NATIVE:
        conditions = case["when"] if isinstance(case["when"], list) else [case["when"]]
        return {"value": all(bool(templar.evaluate_conditional(written(one))) for one in conditions)}
    conditional = Conditional(loader=LOADER)
    conditional.when = case["when"] if isinstance(case["when"], list) else [case["when"]]
    return {"value": bool(conditional.evaluate_conditional(templar, found))}


def answer(golden, case):
    try:
        return condition(golden, case) if "when" in case else template(golden, case)
    except Exception as failure:
        return error(failure)


serve(lambda goldens: [[answer(golden, case) for case in golden["cases"]] for golden in goldens])
