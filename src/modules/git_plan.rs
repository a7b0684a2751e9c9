//! What a task asks of a working copy of Git, and the change that brings it about. Pure.

use crate::connect::shell::quote;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::Args;
use super::programs::step;

/// What the arguments ask for.
#[derive(Debug)]
pub struct Request {
    pub git: String,
    repo: String,
    pub dest: Option<String>,
    version: String,
    remote: String,
    refspec: Option<String>,
    reference: Option<String>,
    pub force: bool,
    depth: Option<i64>,
    pub clone: bool,
    pub update: bool,
    pub bare: bool,
    pub recursive: bool,
    track_submodules: bool,
    single_branch: bool,
    ssh: Option<String>,
    umask: Option<String>,
    separate_git_dir: Option<String>,
    verify: bool,
}

/// What an existing working copy needs.
#[derive(Debug)]
pub struct Update {
    pub url_differs: bool,
    pub moves: bool,
    pub submodules: bool,
}

/// What a version means in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub commit: String,
    pub branch: Option<String>,
    /// A tag's name, for a shallow fetch.
    pub tag: bool,
    /// A commit's name that is not written out.
    pub is_abbreviated: bool,
}

/// What is there.
#[derive(Debug, Default)]
pub struct Seen {
    pub dest_exists: bool,
    /// A working copy is there.
    pub exists: bool,
    pub head: Option<String>,
    pub branch: Option<String>,
    pub local_changes: bool,
    pub url: Option<String>,
    pub submodules_differ: bool,
    /// What `git ls-remote` printed.
    pub refs: String,
}

impl Request {
    pub fn parse(args: &Args) -> Result<Request, Failure> {
        for name in ["archive", "archive_prefix", "gpg_allowlist"] {
            let given = args.get(name).is_some_and(Value::is_truthy);
            if given {
                let why = if name == "gpg_allowlist" {
                    "whose signatures are good is for the keyring of the user to say"
                } else {
                    "run `git archive` by the module `command`"
                };
                return Err(Failure::new(format!("the argument `{name}` is not supported: {why}")));
            }
        }
        let text = |name: &str| args.str(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let clone = args.bool("clone");
        let dest = text("dest");
        if dest.is_none() && clone {
            return Err(Failure::new("the destination directory must be specified unless clone=no"));
        }
        let (repo, version, remote) = (args.text("repo"), args.text("version"), args.text("remote"));
        for (name, word) in [("repo", repo), ("version", version), ("remote", remote)] {
            if word.is_empty() || word.starts_with('-') || word.contains(['\n', '\0']) {
                return Err(Failure::new(format!("`{name}` cannot be `{word}`")));
            }
        }
        // a shallow clone of a path would be a whole one
        let repo = if repo.starts_with('/') { format!("file://{repo}") } else { repo.to_owned() };
        let umask = match args.get("umask") {
            None => None,
            Some(Value::Str(text)) if u32::from_str_radix(text.as_str(), 8).is_ok_and(|umask| umask <= 0o777) => {
                Some(text.as_str().to_owned())
            }
            Some(Value::Str(_)) => return Err(Failure::new("umask must be an octal integer")),
            Some(_) => return Err(Failure::new("umask must be defined as a quoted octal integer")),
        };
        Ok(Request {
            git: text("executable").unwrap_or_else(|| "git".to_owned()),
            repo,
            dest,
            version: version.to_owned(),
            remote: remote.to_owned(),
            refspec: text("refspec"),
            reference: text("reference"),
            force: args.bool("force"),
            depth: args.int("depth").filter(|depth| *depth > 0),
            clone,
            update: args.bool("update"),
            bare: args.bool("bare"),
            recursive: args.bool("recursive"),
            track_submodules: args.bool("track_submodules"),
            single_branch: args.bool("single_branch"),
            ssh: ssh_command(args),
            umask,
            separate_git_dir: text("separate_git_dir"),
            verify: args.bool("verify_commit"),
        })
    }

    /// The repository's address without a password that is in it.
    pub fn shown_repo(&self) -> String {
        match (self.repo.find("://"), self.repo.find('@')) {
            (Some(scheme), Some(at)) if scheme < at => match self.repo[scheme + 3..at].split_once(':') {
                Some((user, _)) => format!("{}://{user}:***{}", &self.repo[..scheme], &self.repo[at..]),
                None => self.repo.clone(),
            },
            _ => self.repo.clone(),
        }
    }

    pub fn is_same_address(&self, url: &str) -> bool {
        let plain = |url: &str| url.trim_end_matches('/').strip_prefix("file://").unwrap_or(url).to_owned();
        url == self.repo || plain(url) == plain(&self.repo)
    }

    /// The lines before every script: nobody is asked for a password, and messages are in English.
    pub fn preparation(&self) -> String {
        let git = quote(&self.git);
        let ssh = self.ssh.as_ref().map(|ssh| format!("export GIT_SSH_COMMAND={}\n", quote(ssh))).unwrap_or_default();
        let umask = self.umask.as_ref().map(|umask| format!("umask {umask}\n")).unwrap_or_default();
        format!("export GIT_TERMINAL_PROMPT=0 LC_ALL=C\n{ssh}{umask}command -v {git} >/dev/null 2>&1 || exit 127\n")
    }

    /// Prints the commit, the branch, local changes, the remote's address, and submodules that differ.
    pub fn local_script(&self, dest: &str) -> String {
        let git = quote(&self.git);
        let is_there = if self.bare { "[ -f config ]" } else { "[ -e .git ]" };
        let changes = if self.bare { ":".to_owned() } else { format!("{git} status --porcelain | grep -v '^??'") };
        let submodules = if self.recursive && !self.bare {
            format!("[ ! -e .gitmodules ] || {git} submodule status --recursive | grep '^[-+U]'")
        } else {
            ":".to_owned()
        };
        format!(
            "cd {} 2>/dev/null && {is_there} || exit 3\n{git} rev-parse --verify -q HEAD; printf '\\036'\n\
             {git} symbolic-ref -q --short HEAD; printf '\\036'\n{changes}; printf '\\036'\n\
             {git} config --get {}; printf '\\036'\n{submodules}\n:",
            quote(dest),
            quote(&format!("remote.{}.url", self.remote))
        )
    }

    pub fn remote_script(&self) -> String {
        let git = quote(&self.git);
        let patterns =
            if self.version == "HEAD" { "HEAD".to_owned() } else { format!("HEAD {0} {0}^{{}}", quote(&self.version)) };
        // --symref came with git 2.8; older ones tell the commit only
        let repo = quote(&self.repo);
        format!("{git} ls-remote --symref {repo} {patterns} 2>/dev/null || {git} ls-remote {repo} {patterns}")
    }

    /// The change; its last answer is the commit.
    pub fn change(
        &self,
        dest: &str,
        seen: &Seen,
        target: &Target,
        update: Option<&Update>,
        environment: &str,
    ) -> Change {
        let preparation = format!("{environment}{}", self.preparation());
        let git = quote(&self.git);
        let body = match update {
            None => self.clone_script(dest, target),
            Some(update) => self.update_script(dest, seen, target, update),
        };
        let script = format!("{preparation}{{\n{body}\n}} >&2 || exit\ncd {} && {git} rev-parse HEAD", quote(dest));
        let before = seen.head.clone().unwrap_or_default();
        let line = |commit: &str| if commit.is_empty() { String::new() } else { format!("{commit}\n") };
        Change::uncertain(format!("git {dest}"), Footprint::tree(dest))
            .step(step(script))
            .inverse(self.inverse(dest, seen, update, &preparation))
            .difference(Difference::new(format!("git {dest}"), line(&before), line(&target.commit)))
    }

    fn inverse(&self, dest: &str, seen: &Seen, update: Option<&Update>, preparation: &str) -> Inverse {
        let (path, git) = (quote(dest), quote(&self.git));
        let Some(update) = update else {
            // a clone only goes to a place where nothing is
            let mut remove = vec![if seen.dest_exists {
                format!("cd {path} && find . ! -name . -prune -exec rm -rf {{}} +")
            } else {
                format!("rm -rf {path}")
            }];
            remove.extend(self.separate_git_dir.as_ref().map(|directory| format!("rm -rf {}", quote(directory))));
            return Inverse::Steps(remove.into_iter().map(step).collect());
        };
        if seen.local_changes {
            return Inverse::None(format!("local changes in {dest} were discarded"));
        }
        let Some(head) = &seen.head else { return Inverse::None(format!("{dest} had no commit")) };
        let mut code = format!("{preparation}cd {path} || exit\n");
        if update.url_differs
            && let Some(url) = &seen.url
        {
            code.push_str(&format!("{git} remote set-url {} {} || exit\n", quote(&self.remote), quote(url)));
        }
        if !self.bare {
            code.push_str(&match &seen.branch {
                Some(branch) => format!("{git} checkout -q --force -B {} {head}", quote(branch)),
                None => format!("{git} checkout -q --force --detach {head}"),
            });
            if self.recursive {
                code.push_str(&format!(" && {{ [ ! -e .gitmodules ] || {git} submodule update --init --recursive; }}"));
            }
        }
        Inverse::Steps(vec![step(code)])
    }

    fn depth(&self) -> String {
        self.depth.map(|depth| format!(" --depth {depth}")).unwrap_or_default()
    }

    fn clone_script(&self, dest: &str, target: &Target) -> String {
        let (git, path) = (quote(&self.git), quote(dest));
        let mut words = format!("{git} clone --origin {}", quote(&self.remote));
        if self.bare {
            words.push_str(" --bare");
        }
        let named = target.branch.is_some() || target.tag;
        if named && self.version != "HEAD" {
            words.push_str(&format!(" --branch {}", quote(&self.version)));
        }
        if self.depth.is_some() && (named || self.version == "HEAD" || self.refspec.is_some()) {
            words.push_str(&self.depth());
        }
        if self.single_branch {
            words.push_str(" --single-branch");
        }
        if let Some(reference) = &self.reference {
            words.push_str(&format!(" --reference {}", quote(reference)));
        }
        if let Some(directory) = &self.separate_git_dir {
            words.push_str(&format!(" --separate-git-dir={}", quote(directory)));
        }
        let parent = quote(super::file_common::path::parent(dest));
        let mut lines =
            vec![format!("mkdir -p {parent}"), format!("{words} {} {path}", quote(&self.repo)), format!("cd {path}")];
        if self.bare && self.remote != "origin" {
            lines.push(format!("{git} config remote.{0}.url {1}", self.remote, quote(&self.repo)));
        }
        if let Some(refspec) = &self.refspec {
            lines.push(format!("{git} fetch{} {} {}", self.depth(), quote(&self.remote), quote(refspec)));
        }
        if !self.bare && !named && self.version != "HEAD" {
            lines.push(format!("{git} checkout -q --force {}", quote(&self.version)));
        }
        lines.extend(self.verification());
        lines.extend(self.submodules());
        lines.join(" &&\n")
    }

    fn update_script(&self, dest: &str, seen: &Seen, target: &Target, update: &Update) -> String {
        let (git, remote) = (quote(&self.git), quote(&self.remote));
        let mut lines = vec![format!("cd {}", quote(dest))];
        if seen.local_changes {
            lines.push(format!("{git} reset -q --hard HEAD"));
        }
        match &seen.url {
            None => lines.push(format!("{git} remote add {remote} {}", quote(&self.repo))),
            Some(_) if update.url_differs => lines.push(format!("{git} remote set-url {remote} {}", quote(&self.repo))),
            Some(_) => {}
        }
        let force = if self.force { " --force" } else { "" };
        if self.bare {
            lines.push(format!("{git} fetch{force} {remote} '+refs/heads/*:refs/heads/*' '+refs/tags/*:refs/tags/*'"));
        } else {
            lines.push(match (self.depth, &target.branch) {
                (Some(_), Some(branch)) => format!(
                    "{git} fetch{force}{} {remote} {}",
                    self.depth(),
                    quote(&format!("+refs/heads/{branch}:refs/remotes/{}/{branch}", self.remote))
                ),
                (Some(_), None) if target.tag => format!(
                    "{git} fetch{force}{} {remote} {}",
                    self.depth(),
                    quote(&format!("+refs/tags/{0}:refs/tags/{0}", self.version))
                ),
                // a commit cannot always be asked for by its name
                (Some(_), None) => format!(
                    "{{ {git} fetch{force}{} {remote} {} || {git} fetch --tags {remote}; }}",
                    self.depth(),
                    quote(&self.version)
                ),
                (None, _) => format!("{git} fetch{force} {remote} && {git} fetch{force} --tags {remote}"),
            });
        }
        if let Some(refspec) = &self.refspec {
            lines.push(format!("{git} fetch{force}{} {remote} {}", self.depth(), quote(refspec)));
        }
        if !self.bare {
            lines.push(match &target.branch {
                Some(branch) => {
                    let upstream = quote(&format!("{}/{branch}", self.remote));
                    let branch = quote(branch);
                    format!(
                        "{{ {git} show-ref --verify -q refs/heads/{branch} && {git} checkout -q --force {branch} || \
                         {git} checkout -q --force --track -b {branch} {upstream}; }} && {git} reset -q --hard {upstream}"
                    )
                }
                None => format!("{git} checkout -q --force {}", quote(&self.version)),
            });
        }
        lines.extend(self.verification());
        lines.extend(self.submodules());
        lines.join(" &&\n")
    }

    fn verification(&self) -> Option<String> {
        let git = quote(&self.git);
        let version = quote(&self.version);
        self.verify.then(|| {
            format!("if {git} show-ref --verify -q refs/tags/{version}; then {git} verify-tag {version}; else {git} verify-commit HEAD; fi")
        })
    }

    fn submodules(&self) -> Option<String> {
        let git = quote(&self.git);
        let track = if self.track_submodules { " --remote" } else { "" };
        let force = if self.force { " --force" } else { "" };
        (self.recursive && !self.bare).then(|| {
            format!(
                "if [ -e .gitmodules ]; then {git} submodule sync --recursive -q && {git} submodule update --init --recursive{track}{force}; fi"
            )
        })
    }
}

fn ssh_command(args: &Args) -> Option<String> {
    let mut options = args.str("ssh_opts").unwrap_or_default().to_owned();
    let says = options.contains("StrictHostKeyChecking");
    if args.bool("accept_hostkey") && !says {
        options.push_str(" -o StrictHostKeyChecking=no");
    }
    if args.bool("accept_newhostkey") && !says {
        options.push_str(" -o StrictHostKeyChecking=accept-new");
    }
    if let Some(key) = args.str("key_file") {
        options.push_str(&format!(" -i {} -o IdentitiesOnly=yes", quote(key)));
    }
    let options = options.trim();
    (!options.is_empty()).then(|| format!("ssh -o BatchMode=yes {options}"))
}

impl Seen {
    /// Takes in what [`Request::local_script`] printed.
    pub fn take_local(&mut self, parts: &[String]) {
        let word = |index: usize| Some(parts[index].trim().to_owned()).filter(|text| !text.is_empty());
        self.exists = true;
        self.head = word(0);
        self.branch = word(1);
        self.local_changes = word(2).is_some();
        self.url = word(3);
        self.submodules_differ = word(4).is_some();
    }

    /// What the task's version means now.
    pub fn target(&self, request: &Request) -> Result<Target, Failure> {
        let version = request.version.as_str();
        let find = |name: &str| {
            let pairs = self.refs.lines().filter_map(|line| line.split_once('\t'));
            pairs
                .filter(|(commit, _)| !commit.starts_with("ref:"))
                .find(|(_, own)| *own == name)
                .map(|(commit, _)| commit.to_owned())
        };
        let symref = || {
            let refs = self.refs.lines().filter_map(|line| line.strip_prefix("ref: refs/heads/"));
            refs.filter_map(|rest| rest.split_once('\t'))
                .find(|(_, own)| *own == "HEAD")
                .map(|(branch, _)| branch.to_owned())
        };
        let known =
            |commit: String, branch: Option<String>, tag: bool| Target { commit, branch, tag, is_abbreviated: false };
        if version == "HEAD" {
            let commit =
                find("HEAD").ok_or_else(|| Failure::new(format!("{} has no commit yet", request.shown_repo())))?;
            // an old git does not tell the branch; the one that is checked out stays then
            let branch = symref().or_else(|| self.branch.clone().filter(|_| self.exists));
            return Ok(known(commit, branch, false));
        }
        if let Some(commit) = find(&format!("refs/heads/{version}")) {
            return Ok(known(commit, Some(version.to_owned()), false));
        }
        let tag = find(&format!("refs/tags/{version}^{{}}")).or_else(|| find(&format!("refs/tags/{version}")));
        if let Some(commit) = tag {
            return Ok(known(commit, None, true));
        }
        let is_name = (4..=64).contains(&version.len()) && version.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_name || version.starts_with("refs/") || request.refspec.is_some() {
            let full = version.len() >= 40 && is_name;
            return Ok(Target { commit: version.to_owned(), branch: None, tag: false, is_abbreviated: !full });
        }
        Err(Failure::new(format!(
            "{} has no branch or tag `{version}`, and it is no name of a commit",
            request.shown_repo()
        )))
    }
}
