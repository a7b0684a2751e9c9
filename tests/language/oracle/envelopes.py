"""Envelopes of Ansible Vault: opened, and made anew with the salt that each has."""

import binascii

from ansible.parsing.vault import VaultLib, VaultSecret, parse_vaulttext_envelope
from common import NATIVE, error, serve


def salt_of(envelope):
    """The salt is the first line of what the envelope's digits say."""
    body = parse_vaulttext_envelope(envelope.encode())[0]
    return binascii.unhexlify(body.split(b"\n", 1)[0]) if b"\n" in body else binascii.unhexlify(binascii.unhexlify(body).split(b"\n", 1)[0])


def answer(case):
    secret = VaultSecret(case["password"].encode())
    label = case["label"]
    vault = VaultLib([(label, secret)])
    salt = case["salt"].encode() if "salt" in case else salt_of(case["envelope"])
    identity = None if label == "default" else label
    made = vault.encrypt(case["plaintext"].encode(), secret, vault_id=identity, salt=salt).decode()
    return {"envelope": made, "opened": vault.decrypt(made).decode() == case["plaintext"]}


serve(lambda goldens: [[answer(case) for case in golden["cases"]] for golden in goldens])
