"""YAML read and written, arguments on one line, JMESPath queries: a list of goldens in, their results out."""

import jmespath
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv
from common import error, plain, serve, type_name


def pairs(value):
    """A value with its types: maps as pairs, numbers as their text in Python."""
    if isinstance(value, dict):
        return {"D": [[pairs(key), pairs(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [pairs(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return {"I": str(int(value))}
    if isinstance(value, float):
        return {"F": repr(float(value))}
    return str(value)


def document(case):
    value = DataLoader().load(case["yaml"])
    found = {"value": plain(value)}
    if isinstance(value, dict):
        found["type"] = {str(key): type_name(item).replace("none", "null") for key, item in value.items()}
    return found


def dump(value, options):
    options = {"sort_keys": True, "allow_unicode": True, "default_flow_style": None, **options}
    return yaml.dump(value, Dumper=yaml.CSafeDumper, **options)


def of_kind(case):
    match case["kind"]:
        case "yaml":
            return {"result": pairs(DataLoader().load(case["text"]))}
        case "kv":
            return {"result": pairs(parse_kv(case["text"], check_raw=case["check_raw"]))}
        case "dump":
            return {"result": dump(case["value"], case["options"])}


def line(case):
    return {"out": plain(parse_kv(case["in"], check_raw=case["check_raw"]))}


def dumping(case):
    return {"out": dump(yaml.safe_load(case["yaml"]), case["options"])}


def query(case, data):
    return {"value": plain(jmespath.search(case["query"], data))}


def answer(golden, case):
    try:
        match golden["kind"]:
            case "documents":
                return document(case)
            case "generated":
                return of_kind(case)
            case "lines":
                return line(case)
            case "dumps":
                return dumping(case)
            case "queries":
                return query(case, golden["data"])
    except Exception as failure:
        # what is wrong with a generated text does not matter
        return {} if golden["kind"] == "generated" else error(failure)


serve(lambda goldens: [[answer(golden, case) for case in golden["cases"]] for golden in goldens])
