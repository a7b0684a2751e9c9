//! What whole runs cost on a real sshd.

use std::fs;
use std::process::Command;

use crate::server::{self, Server, User};
use crate::skip::skipped;

const PLAYBOOK: &str = "\
- hosts: all
  become: true
  tasks:
    - copy: {content: \"{{ ansible_facts.kernel }}\\n\", dest: \"{{ root }}/kernel\", mode: '0600'}
    - file: {path: \"{{ root }}/directory\", state: directory, mode: '0750'}
    - lineinfile: {path: \"{{ root }}/directory/lines\", line: \"a line\", create: true}
    - file: {path: \"{{ root }}/link\", src: kernel, state: link}
    - stat: {path: \"{{ root }}/kernel\"}
      register: kernel
    - assert: {that: kernel.stat.exists and kernel.stat.pw_name == 'root'}
";

/// Facts take two round trips, for the channel and for the reads that go with its command; all tasks one further.
#[test]
fn a_host_that_is_right_already_costs_three_round_trips_through_sudo_too() {
    if !server::possible() {
        return;
    }
    if !fs::exists("/usr/bin/sudo").unwrap() {
        skipped("there is no /usr/bin/sudo");
        return;
    }
    let server = Server::start();
    let user = User::create("cost", "ALL=(ALL) NOPASSWD: ALL");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let common = "-F none -o GlobalKnownHostsFile=none -o IdentityAgent=none";
    let inventory = format!(
        "host ansible_host=127.0.0.1 ansible_port={} ansible_ssh_private_key_file={} \
         ansible_ssh_common_args='{common} -o UserKnownHostsFile={}'\n",
        server.port,
        server.text("id"),
        server.text("known_hosts")
    );
    fs::write(at("inventory"), inventory).unwrap();
    fs::write(at("play.yml"), PLAYBOOK).unwrap();
    let run = |login: &str, root: &str| {
        fs::create_dir_all(at(root)).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_trimtab"))
            .args(["play", "--output", "jsonl", "-i"])
            .args([at("inventory"), at("play.yml")])
            .args(["-u", login, "-e", &format!("root={}", at(root).display())])
            .env("HOME", folder.path())
            .env("ANSIBLE_CONFIG", "/dev/null")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let the = |name: &str| events.iter().find(|event| event["event"] == name).unwrap().clone();
        (the("ended")["stats"]["host"]["changed"].clone(), the("host_cost")["round_trips"].clone(), text)
    };
    for login in ["root", user.name.as_str()] {
        let (changed, _, text) = run(login, login);
        assert_eq!(changed, 4, "{login}: {text}");
        let (changed, round_trips, text) = run(login, login);
        assert_eq!((changed, round_trips), (0.into(), 3.into()), "{login}: {text}");
    }
}
