//! `community.docker.docker_container`: containers of Docker.

use serde_json::Value as Json;

use crate::connect::shell::quote;
use crate::host::{Change, Difference, Failure, Inverse};
use crate::value::Value;

use super::docker_client::{self as client, Client, with_tag};
use super::docker_options::{Setting, settings};
use super::programs::make;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.docker.docker_container",
    aliases: &["community.general.docker_container"],
    summary: "Keeps containers by the host's docker client: made anew where what is asked for differs",
    args: &[
        Arg::new("name", Type::Str, "the container").required(),
        Arg::new("state", Type::Str, "what is to be")
            .default("started")
            .choices(&["absent", "present", "stopped", "started"]),
        Arg::new("image", Type::Str, "the image; needed for a new container"),
        Arg::new("pull", Type::Str, "when the image is pulled: missing, always, never (or a boolean)")
            .default("missing"),
        Arg::new("recreate", Type::Bool, "make it anew in any case").default("false"),
        Arg::new("restart", Type::Bool, "restart it if it is not made anew").default("false"),
        Arg::new("force_kill", Type::Bool, "kill it rather than stop it").default("false").aliases(&["forcekill"]),
        Arg::new("stop_timeout", Type::Int, "seconds it has to stop"),
        Arg::new("keep_volumes", Type::Bool, "keep its volumes without a name when it is removed").default("true"),
        Arg::new("detach", Type::Bool, "do not wait for its end").default("true"),
        Arg::new("cleanup", Type::Bool, "with `detach: false` remove it when it has ended").default("false"),
        Arg::new("output_logs", Type::Bool, "has no effect: what it wrote is in the answer").default("false"),
        Arg::new("command", Type::Raw, "what it runs, in place of the image's own"),
        Arg::new("entrypoint", Type::List, "the program before the command"),
        Arg::new("env", Type::Dict, "variables of its environment"),
        Arg::new("env_file", Type::Path, "a file of them on the host"),
        Arg::new("labels", Type::Dict, "labels"),
        Arg::new("ports", Type::List, "ports: [ADDRESS:]HOST:CONTAINER[/udp]").aliases(&["published_ports"]),
        Arg::new("exposed_ports", Type::List, "ports that are told only").aliases(&["expose", "exposed"]),
        Arg::new("publish_all_ports", Type::Bool, "give all told ports a port of the host"),
        Arg::new("volumes", Type::List, "HOST:CONTAINER[:MODE], or the name of a volume in place of HOST"),
        Arg::new("mounts", Type::RawList, "not supported: use `volumes` and `tmpfs`"),
        Arg::new("tmpfs", Type::List, "directories in memory: PATH[:OPTIONS]"),
        Arg::new("volumes_from", Type::List, "containers whose volumes it has too"),
        Arg::new("network_mode", Type::Str, "bridge, host, none, container:NAME, or a network"),
        Arg::new(
            "networks",
            Type::RawList,
            "networks: maps of `name` and maybe `aliases`, `ipv4_address`, `ipv6_address`, `links`",
        ),
        Arg::new(
            "networks_cli_compatible",
            Type::Bool,
            "has no effect: the first network is in place of the default one",
        )
        .default("true"),
        Arg::new("purge_networks", Type::Bool, "leave networks that are not named").default("false"),
        Arg::new("links", Type::List, "other containers: NAME:ALIAS"),
        Arg::new("dns_servers", Type::List, "servers for names").aliases(&["dns"]),
        Arg::new("dns_search_domains", Type::List, "domains for short names"),
        Arg::new("dns_opts", Type::List, "options for names"),
        Arg::new("etc_hosts", Type::Dict, "names and addresses for its /etc/hosts"),
        Arg::new("hostname", Type::Str, "its own name"),
        Arg::new("domainname", Type::Str, "its domain"),
        Arg::new("mac_address", Type::Str, "its hardware address"),
        Arg::new("restart_policy", Type::Str, "when it is started again").choices(&[
            "no",
            "on-failure",
            "always",
            "unless-stopped",
        ]),
        Arg::new("restart_retries", Type::Int, "how often after failures"),
        Arg::new("user", Type::Str, "the user it runs as"),
        Arg::new("groups", Type::List, "more groups of that user"),
        Arg::new("working_dir", Type::Str, "the directory it runs in"),
        Arg::new("privileged", Type::Bool, "it may do everything"),
        Arg::new("capabilities", Type::List, "capabilities that it gets"),
        Arg::new("cap_drop", Type::List, "capabilities that it loses"),
        Arg::new("security_opts", Type::List, "options for security"),
        Arg::new("read_only", Type::Bool, "its own files cannot be changed"),
        Arg::new("init", Type::Bool, "a small init looks after its processes"),
        Arg::new("interactive", Type::Bool, "its standard input stays open"),
        Arg::new("tty", Type::Bool, "it has a terminal"),
        Arg::new("auto_remove", Type::Bool, "remove it when it ends"),
        Arg::new("memory", Type::Str, "the most memory: 512M"),
        Arg::new("memory_reservation", Type::Str, "memory that it should have"),
        Arg::new("memory_swap", Type::Str, "memory and swap together; -1: any"),
        Arg::new("memory_swappiness", Type::Int, "0 to 100"),
        Arg::new("cpus", Type::Float, "how many CPUs' time it may use"),
        Arg::new("cpu_shares", Type::Int, "its share of time"),
        Arg::new("cpu_period", Type::Int, "period of the scheduler in microseconds"),
        Arg::new("cpu_quota", Type::Int, "time in a period in microseconds"),
        Arg::new("cpuset_cpus", Type::Str, "the CPUs it may use: 0-3,8"),
        Arg::new("cpuset_mems", Type::Str, "the memory nodes it may use"),
        Arg::new("blkio_weight", Type::Int, "10 to 1000"),
        Arg::new("pids_limit", Type::Int, "the most processes"),
        Arg::new("oom_killer", Type::Bool, "the kernel may kill it"),
        Arg::new("oom_score_adj", Type::Int, "how readily, -1000 to 1000"),
        Arg::new("shm_size", Type::Str, "the size of /dev/shm"),
        Arg::new("ulimits", Type::List, "limits: nofile:1024:2048"),
        Arg::new("sysctls", Type::Dict, "parameters of the kernel"),
        Arg::new("devices", Type::List, "HOST[:CONTAINER[:rwm]]"),
        Arg::new("pid_mode", Type::Str, "whose processes it sees"),
        Arg::new("ipc_mode", Type::Str, "whose shared memory it sees"),
        Arg::new("userns_mode", Type::Str, "host: no user namespace"),
        Arg::new("uts", Type::Str, "host: the host's name"),
        Arg::new("cgroup_parent", Type::Str, "the control group it is in"),
        Arg::new("runtime", Type::Str, "what runs it"),
        Arg::new("platform", Type::Str, "the platform of the image"),
        Arg::new("stop_signal", Type::Str, "the signal to stop it"),
        Arg::new("log_driver", Type::Str, "where its output goes"),
        Arg::new("log_options", Type::Dict, "options for that").aliases(&["log_opt"]),
        Arg::new(
            "comparisons",
            Type::Dict,
            "by option `ignore`: a difference does not matter; `strict` and `allow_more_present` are the only others",
        ),
        Arg::new("container_default_behavior", Type::Str, "has no effect: only what is given is compared")
            .choices(&["compatibility", "no_defaults"]),
        Arg::shared(client::DAEMON),
    ],
    rules: &[Rule::MutuallyExclusive(&["auto_remove", "restart_policy"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("container", "what docker tells of it; with `detach: false` its `Output` and end too"),
        ("status", "its exit code with `detach: false`"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings: task, .. } = invocation;
    let client = Client::parse(&args, &task)?;
    let (name, state) = (args.text("name"), args.text("state"));
    if name.is_empty()
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte))
        || name.starts_with('-')
    {
        return Err(Failure::new(format!("`{name}` cannot be the name of a container")));
    }
    if args.get("mounts").is_some_and(Value::is_truthy) {
        return Err(Failure::new("the argument `mounts` is not supported: use `volumes` and `tmpfs`"));
    }
    let quoted = quote(name);
    let there = client.inspect(&host, "container", name).await?;
    let stop = match (args.bool("force_kill"), args.int("stop_timeout")) {
        (true, _) => format!("docker stop -t 0 {quoted} >&2"),
        (false, Some(seconds)) => format!("docker stop -t {seconds} {quoted} >&2"),
        (false, None) => format!("docker stop {quoted} >&2"),
    };
    let remove = format!("docker rm -f{} {quoted} >&2", if args.bool("keep_volumes") { "" } else { " -v" });
    let runs = there.as_ref().is_some_and(|container| container.pointer("/State/Running") == Some(&Json::Bool(true)));
    let job = Job { host: &host, client: &client, name };
    if state == "absent" {
        return match there {
            None => Ok(Outcome::ok()),
            Some(container) => {
                let code = if runs && !args.bool("force_kill") { format!("{stop} || exit\n{remove}") } else { remove };
                let inverse = Inverse::None(format!("what was in the container {name} is gone"));
                let shown = (lines(&container), String::new());
                job.change(&code, inverse, shown, None).await.map(|(outcome, _)| outcome)
            }
        };
    }
    let wanted = settings(&args)?;
    let ignored = |setting: &Setting| {
        let comparisons = args.get("comparisons").and_then(Value::as_map);
        let of = |key: &str| comparisons.and_then(|map| map.get(key)).map(|value| value.to_text().into_owned());
        of(setting.name).or_else(|| of("*")).as_deref() == Some("ignore")
    };
    let image = match args.str("image").filter(|image| !image.is_empty()) {
        Some(image) => Some(with_tag(image, "latest")),
        None => there.as_ref().and_then(|container| container.pointer("/Config/Image")?.as_str().map(str::to_owned)),
    };
    let Some(image) = image else { return Err(Failure::new("Cannot create container when image is not specified!")) };
    let present = client.inspect(&host, "image", &image).await?;
    let pull = match args.text("pull").to_lowercase().as_str() {
        "always" | "true" | "yes" => true,
        "never" if present.is_none() => {
            return Err(Failure::new(format!("Image \"{image}\" does not exist and pull=never")));
        }
        _ => present.is_none(),
    };
    let mut differ: Vec<&Setting> = Vec::new();
    let mut shown = (String::new(), String::new());
    if let Some(container) = &there {
        for setting in wanted.iter().filter(|setting| !ignored(setting)) {
            if !setting.is_so(container, present.as_ref()) {
                shown.0.push_str(&format!("{}: {}\n", setting.name, setting.found(container)));
                shown.1.push_str(&format!("{}: {}\n", setting.name, setting.shown()));
                differ.push(setting);
            }
        }
        let own = container.pointer("/Image").and_then(Json::as_str).unwrap_or_default();
        let asked = present.as_ref().and_then(|image| image.get("Id")?.as_str()).unwrap_or_default();
        let named = container.pointer("/Config/Image").and_then(Json::as_str).unwrap_or_default();
        let other_image = if asked.is_empty() { with_tag(named, "latest") != image } else { own != asked };
        if args.has("image") && other_image {
            shown.0.push_str(&format!("image: {named}\n"));
            shown.1.push_str(&format!("image: {image}\n"));
        }
    }
    let anew = there.is_some() && (!shown.0.is_empty() || args.bool("recreate"));
    let start = state == "started";
    let detach = args.bool("detach");
    let mut code = String::new();
    let mut inverse = Vec::new();
    if pull && (there.is_none() || anew || args.text("pull") != "missing") {
        code.push_str(&format!("docker pull {} >&2 || exit\n", quote(&image)));
    }
    if there.is_none() || anew {
        let old = quote(&format!("{name}.trimtab-old"));
        if anew {
            if runs {
                code.push_str(&format!("{stop} || exit\n"));
            }
            code.push_str(&format!("docker rename {quoted} {old} || exit\n"));
        }
        let words: String = wanted.iter().map(|setting| setting.words.as_str()).collect();
        let command = wanted.iter().map(|setting| setting.command.as_str()).collect::<String>();
        let verb = if start && !detach { "run" } else { "create" };
        let create = format!("docker {verb} --name {quoted}{words} {}{command}", quote(&image));
        let back = if anew {
            format!("docker rm -f {quoted} >&2; docker rename {old} {quoted}; ")
        } else {
            format!("docker rm -f {quoted} >&2; ")
        };
        // what cannot be made leaves the old one as it was
        let again = if anew && runs { format!("docker start {quoted} >&2; ") } else { String::new() };
        if start && !detach {
            code.push_str(&format!("{create}; c=$?\n"));
        } else {
            code.push_str(&format!("{create} >&2 || {{ c=$?; {back}{again}exit $c; }}\n"));
        }
        for setting in &wanted {
            for network in &setting.connect {
                code.push_str(&format!("docker network connect {network} {quoted} || exit\n"));
            }
        }
        if start && detach {
            code.push_str(&format!("docker start {quoted} >&2 || {{ c=$?; {back}{again}exit $c; }}\n"));
        }
        if anew {
            code.push_str(&format!("docker rm -f {old} >&2 || exit\n"));
        }
        if start && !detach {
            code.push_str("printf '\\036%s\\036' \"$c\"\n");
        }
        if !anew {
            inverse.push(client.step(&format!("docker rm -f {quoted} >&2")));
        }
    } else if start && !runs {
        code.push_str(&format!("docker start {quoted} >&2 || exit\n"));
        inverse.push(client.step(&stop));
    } else if start && args.bool("restart") {
        code.push_str(&format!("docker restart {quoted} >&2 || exit\n"));
        inverse.push(client.step(":"));
    } else if state == "stopped" && runs {
        code.push_str(&format!("{stop} || exit\n"));
        inverse.push(client.step(&format!("docker start {quoted} >&2")));
    }
    if code.is_empty() {
        let container = there.map(|container| Value::from_json(&container)).unwrap_or_default();
        return Ok(Outcome::ok().with("container", container));
    }
    let tail = if args.bool("cleanup") && !detach {
        format!("docker container inspect {quoted}; docker rm -f {quoted} >&2")
    } else {
        format!("docker container inspect {quoted} || :")
    };
    if shown.0.is_empty() {
        let word = |runs: bool| if runs { "running" } else { "not running" };
        shown = match &there {
            None => (String::new(), format!("{image}, {}\n", word(start))),
            Some(_) => (format!("{}\n", word(runs)), format!("{}\n", word(start))),
        };
    }
    let inverse = match anew {
        true => Inverse::None(format!("the container {name} was made anew; what was in the old one is gone")),
        false => Inverse::Steps(inverse),
    };
    let (outcome, text) = job.change(&(code + &tail), inverse, shown, Some(detach)).await?;
    Ok(match text {
        None => outcome,
        Some((output, code, container)) => {
            let mut container = container.unwrap_or_default();
            if !detach && let Json::Object(map) = &mut container {
                map.insert("Output".to_owned(), output.into());
            }
            let outcome = outcome.with("container", Value::from_json(&container));
            match code.filter(|_| !detach) {
                Some(0) => outcome.with("status", 0),
                Some(code) => {
                    let failure =
                        Failure::new(format!("the container ended with exit code {code}")).with("status", code);
                    return Err(failure.with("container", Value::from_json(&container)));
                }
                None => outcome,
            }
        }
    })
}

/// What the output of the change says: what the container wrote, its exit code, what docker tells.
type Told = (String, Option<i64>, Option<Json>);

struct Job<'a> {
    host: &'a crate::host::Host,
    client: &'a Client,
    name: &'a str,
}

impl Job<'_> {
    async fn change(
        &self,
        code: &str,
        inverse: Inverse,
        shown: (String, String),
        detach: Option<bool>,
    ) -> Result<(Outcome, Option<Told>), Failure> {
        let what = format!("container {}", self.name);
        // a container may write to the host's directories
        let footprint = if detach == Some(false) { crate::host::Footprint::Everything } else { client::footprint() };
        let change = Change::uncertain(what.as_str(), footprint)
            .step(self.client.step(code))
            .inverse(inverse)
            .difference(Difference::new(what.as_str(), shown.0, shown.1));
        let differences = change.differences.clone();
        let responses = make(self.host, change).await?;
        let outcome = Outcome::changed().differences(differences);
        let Some(response) = responses.and_then(|responses| responses.into_iter().next()) else {
            return Ok((outcome, None));
        };
        let text = response.text();
        let mut parts = text.rsplitn(3, '\u{1e}');
        let json = parts.next().unwrap_or_default();
        let code = parts.next().and_then(|code| code.trim().parse().ok());
        let output = parts.next().unwrap_or_default().to_owned();
        let container = serde_json::from_str::<Json>(json).ok().and_then(|list| list.as_array()?.first().cloned());
        Ok((outcome, Some((output, code, container))))
    }
}

fn lines(container: &Json) -> String {
    let text = |path: &str| container.pointer(path).and_then(Json::as_str).unwrap_or_default().to_owned();
    format!("{}, {}\n", text("/Config/Image"), text("/State/Status"))
}

#[cfg(test)]
#[path = "docker_container_tests.rs"]
mod tests;
