//! Ansible Vault from end to end: encrypted files and values in a play, and the tool itself.

use std::os::unix::fs::PermissionsExt;

use super::support::{Invocation, given};

const PLAYBOOK: &str = "\
- hosts: web
  gather_facts: false
  tasks:
    - debug: msg=\"{{ user }}:{{ token }}\"
    - copy: {src: key, dest: '{{ playbook_dir }}/copied'}
    - command: cat {{ playbook_dir }}/copied
      register: copied
    - debug: var=copied.stdout
";

/// A site whose `group_vars/web/secret.yml` and `files/key` are encrypted, and with an encrypted value of label `prod`.
fn site() -> Invocation {
    let site = given()
        .file("inv", "[web]\nweb1 ansible_connection=local\n")
        .file("play.yml", PLAYBOOK)
        .file("pw", "throw-away\n")
        .file("pw.prod", "another\n")
        .file("wrong", "wrong\n")
        .file("group_vars/web/secret.yml", "user: admin\n")
        .file("files/key", "the key");
    let words = ["vault", "encrypt", "--vault-password-file", "pw", "group_vars/web/secret.yml", "files/key"];
    site.run(&words).printed("");
    let value = site.run(&["vault", "encrypt_string", "--vault-id", "prod@pw.prod", "-n", "token", "t0k{{n"]);
    assert!(value.stdout.starts_with("token: !vault |\n          $ANSIBLE_VAULT;1.2;AES256;prod\n"), "{value:?}");
    site.file("host_vars/web1.yml", &value.stdout)
}

const PLAY: [&str; 4] = ["play", "-i", "inv", "play.yml"];

#[test]
fn a_play_uses_encrypted_files_and_values() {
    let ended = site().run(&[&PLAY[..], &["--vault-id", "prod@pw.prod", "--vault-password-file", "pw"]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    for line in ["\"msg\": \"admin:t0k{{n\"", "\"copied.stdout\": \"the key\""] {
        assert!(ended.stdout.contains(line), "{line} in {}", ended.stdout);
    }
}

#[test]
fn the_settings_name_passwords_too() {
    let configured = site()
        .file("ansible.cfg", "[defaults]\nvault_password_file = pw\n")
        .variable("ANSIBLE_VAULT_IDENTITY_LIST", "wrong@wrong, prod@pw.prod");
    let ended = configured.run(&PLAY);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    assert!(ended.stdout.contains("admin:t0k{{n"), "{}", ended.stdout);
}

#[test]
fn without_its_password_a_file_stops_the_run_and_a_value_fails_its_task() {
    let site = site();
    site.run(&PLAY).refused(
        1,
        "\
error: cannot decrypt `group_vars/web/secret.yml`: attempting to decrypt but no vault secrets found, the vault id is `default`
  = help: give the password with `--vault-password-file`, `--vault-id` or `--ask-vault-pass`
",
    );
    let ended = site.run(&[&PLAY[..], &["--vault-id", "main@pw"]].concat());
    assert_eq!(ended.code, 2, "{ended:?}");
    let message = "attempt to use undecryptable variable: DIR/host_vars/web1.yml:1:8: decryption failed, no vault secrets were \
                   found that could decrypt: the vault id is `prod`, passwords are given for `main`";
    assert!(ended.stdout.contains(message), "{}", ended.stdout);
    let missing = site.run(&[&PLAY[..], &["--vault-password-file", "nowhere"]].concat());
    assert_eq!((missing.code, missing.stdout.as_str()), (1, ""));
    assert!(
        missing.stderr.starts_with("error: the vault password file `nowhere` cannot be read"),
        "{}",
        missing.stderr
    );
}

#[test]
fn an_inventory_is_shown_without_the_password_of_its_values() {
    let shown = site().run(&["inventory", "-i", "inv", "--host", "web1", "--vault-password-file", "pw"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stdout.contains("\"__ansible_vault\": \"$ANSIBLE_VAULT;1.2;AES256;prod\\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains("\"user\": \"admin\""), "{}", shown.stdout);
}

#[test]
fn files_are_edited_rekeyed_and_decrypted() {
    let editor = "#!/bin/sh\nls -l \"$1\" >ls\necho 'more: yes' >>\"$1\"\n";
    let site = given().file("pw", "one\n").file("pw2", "two\n").file("s.yml", "user: admin\n").file("editor", editor);
    let path = |name: &str| site.directory().join(name);
    let mode = |name: &str, mode: u32| {
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    mode("editor", 0o700);
    mode("s.yml", 0o640);
    std::fs::create_dir(path("tmp")).expect("made");
    let site = site.called("ansible-vault").variable("EDITOR", "./editor");
    let tmp = site.directory().join("tmp").to_string_lossy().into_owned();
    let site = site.variable("TMPDIR", &tmp);
    let path = |name: &str| site.directory().join(name);
    site.run(&["encrypt", "--vault-id", "a@pw", "s.yml"]).printed("");
    site.run(&["edit", "--vault-id", "a@pw", "s.yml"]).printed("");
    let read = |name: &str| std::fs::read_to_string(path(name)).expect("a file");
    assert!(read("s.yml").starts_with("$ANSIBLE_VAULT;1.2;AES256;a\n"));
    assert!(read("ls").starts_with("-rw------- "), "{}", read("ls"));
    assert_eq!(std::fs::read_dir(path("tmp")).expect("a directory").count(), 0);
    site.run(&["view", "--vault-id", "a@pw", "s.yml"]).printed("user: admin\nmore: yes\n");
    let rekeyed = site.run(&["rekey", "--vault-id", "a@pw", "--new-vault-password-file", "pw2", "s.yml"]);
    assert_eq!((rekeyed.code, rekeyed.stderr.as_str()), (0, "Rekey successful\n"));
    assert!(read("s.yml").starts_with("$ANSIBLE_VAULT;1.1;AES256\n"));
    let before = read("s.yml");
    let refused = site.run(&["decrypt", "--vault-password-file", "pw", "s.yml"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.starts_with("error: cannot decrypt `s.yml`: decryption failed"), "{}", refused.stderr);
    assert_eq!(read("s.yml"), before);
    // an editor that fails changes nothing and leaves nothing
    let fails = site.variable("EDITOR", "false");
    let failed = fails.run(&["edit", "--vault-password-file", "pw2", "s.yml"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(std::fs::read_dir(fails.directory().join("tmp")).expect("a directory").count(), 0);
    fails.run(&["decrypt", "--vault-password-file", "pw2", "s.yml"]).printed("");
    let file = fails.directory().join("s.yml");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "user: admin\nmore: yes\n");
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o640);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let site = given().file("pw", "one\n").file("pw2", "two\n").file("plain", "x\n");
    let error = |words: &[&str]| {
        let ended = site.run(&[&["vault"], words].concat());
        assert_ne!(ended.code, 0, "{ended:?}");
        ended.stderr
    };
    for (words, message) in [
        (
            &["encrypt", "--vault-id", "a@pw", "--vault-id", "b@pw2", "plain"][..],
            "the vault ids `a`, `b` are available",
        ),
        (
            &["encrypt", "--vault-id", "a@pw", "--encrypt-vault-id", "c", "plain"],
            "no password for `--encrypt-vault-id c`",
        ),
        (&["decrypt", "--vault-id", "a@pw", "plain"], "cannot decrypt `plain`: this is not encrypted"),
        (&["create", "--vault-id", "a@pw", "plain"], "`plain` exists"),
        (&["create", "--vault-id", "a@pw", "new"], "there is no terminal"),
        (&["encrypt", "--vault-id", "a;b@pw", "plain"], "`a;b@pw` is no vault id"),
        (&["encrypt_string", "--vault-id", "a@pw", ""], "the text from the command line is empty"),
        (&["encrypt_string", "--vault-id", "a@pw"], "the text from stdin is empty"),
    ] {
        let said = error(words);
        assert!(said.contains(message), "{words:?}: {said}");
    }
}
