"""Files exchanged with the real ansible-vault: it reads what trimtab encrypts, and trimtab what it rekeys.

    vault_exchange.py TRIMTAB

The passwords are made up and open nothing else.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TRIMTAB = sys.argv[1]
# the tools of this virtual environment
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
# no settings of whoever runs this
CONFIG = tempfile.NamedTemporaryFile(suffix=".cfg")

# name, label, password, plaintext
CASES = [
    ("a file of variables", None, "throw-away", "token: abc123\nlist:\n  - 1\n"),
    ("a label", "prod", "throw-away", "token: prod\n"),
    ("another label and password", "dev", "sesame opens", "token: dev\n"),
    ("letters beyond ascii", "size", "pässwörd 🔑", "gruß: 漢字 🔑\n"),
    ("no line end", None, "throw-away", "x"),
    ("a whole block", None, "throw-away", "0123456789abcdef"),
    ("line ends of dos", None, "throw-away", "a: 1\r\nb: 2\r\n"),
    ("template marks", None, "throw-away", "{{ 1 + 1 }}"),
    ("a long text", None, "throw-away", "all work and no play\n" * 300),
]


def run(words, stdin=None):
    env = {**os.environ, "ANSIBLE_CONFIG": CONFIG.name, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, input=stdin, capture_output=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.stderr.decode()}")
    return done.stdout


def identity(directory, label, password):
    file = directory / "password"
    file.write_text(password + "\n")
    return f"{label}@{file}" if label else f"default@{file}"


def check(directory):
    for name, label, password, plaintext in CASES:
        known = identity(directory, label, password)
        file = directory / "file"
        file.write_bytes(plaintext.encode())
        run([TRIMTAB, "vault", "encrypt", "--vault-id", known, str(file)])
        theirs = run(["ansible-vault", "decrypt", "--vault-id", known, "--output", "-", str(file)])
        assert theirs == plaintext.encode(), name
        # there and back again, with another password on the way
        other = directory / "other"
        other.write_text("another password\n")
        run([TRIMTAB, "vault", "rekey", "--vault-id", known, "--new-vault-id", f"new@{other}", str(file)])
        theirs = run(["ansible-vault", "decrypt", "--vault-id", f"new@{other}", "--output", "-", str(file)])
        assert theirs == plaintext.encode(), name
        run(["ansible-vault", "rekey", "--vault-id", f"new@{other}", "--new-vault-id", known, str(file)])
        run([TRIMTAB, "vault", "decrypt", "--vault-id", known, str(file)])
        assert file.read_bytes() == plaintext.encode(), name
        value = run([TRIMTAB, "vault", "encrypt_string", "--vault-id", known, "-n", "secret", "--", plaintext])
        variables = directory / "vars.yml"
        variables.write_bytes(value)
        words = ["ansible", "localhost", "--vault-id", known, "-e", f"@{variables}", "-m", "debug", "-a", "msg={{ secret }}"]
        shown = run(words).decode()
        assert json.loads(shown[shown.index("{"):])["msg"] == plaintext, name
    print(f"ansible-vault reads all {len(CASES)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        check(pathlib.Path(directory))
