//! What every subcommand that works on hosts needs: settings, the options of the run, the inventory, and the run itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::args::{ConnectionArgs, InventoryArgs, RunArgs, VariableArgs};
use super::journal::Recording;
use super::settings::{Settings, Surroundings, constants};
use super::{extra_vars, magic, passwords, prompt};
use crate::connect::HostKeyChecking;
use crate::engine::event::Event;
use crate::engine::fact_cache::FactCache;
use crate::engine::options::{
    ConnectionDefaults, DEFAULT_WINDOW, Gathering, Options, PatternMismatch, PrivilegeDefaults,
};
use crate::engine::play::{Reload, Run};
use crate::engine::recorder::Recorder;
use crate::engine::run::run_plays;
use crate::error::{Error, Kind, Result};
use crate::inventory::{self, GroupNames, HostId, Inventory, Reading};
use crate::playbook::{LoadOptions, Play};
use crate::report::{self, Look, Teller};
use crate::template::Results;
use crate::ui::Ui;
use crate::value::{Map, Value};
use crate::vars::RunVars;
use crate::vault::Keyring;
use crate::yaml::{self, DuplicateKeys};

/// ansible-playbook's exit code when it is interrupted.
const INTERRUPTED: u8 = 99;

/// Settings and the terminal: what is there before the command line is looked at.
pub struct Session {
    pub ui: Ui,
    pub settings: Settings,
    pub surroundings: Surroundings,
    pub verbosity: u8,
}

/// Hosts and variables of a run.
pub struct Fleet {
    pub inventory: Inventory,
    /// What `--limit` allows; `None`: all hosts.
    pub limit: Option<HashSet<HostId>>,
    pub sources: Vec<PathBuf>,
    /// Reads the inventory once more.
    pub reload: Reload,
    pub extra: Arc<Map>,
    pub load: LoadOptions,
}

impl Session {
    /// Says what settings had no meaning.
    pub fn begin(ui: Ui, settings: Settings, surroundings: Surroundings, verbose: u8) -> Result<Session> {
        let verbosity = settings.number("verbosity")?.min(9) as u8;
        yaml::set_duplicate_keys(match settings.text("duplicate_dict_key").as_deref() {
            Some("error") => DuplicateKeys::Error,
            Some("ignore") => DuplicateKeys::Ignore,
            Some("warn") | None => DuplicateKeys::Warn,
            Some(_) => return Err(settings.wants("duplicate_dict_key", "warn, error or ignore")),
        });
        let mut session = Session { ui, settings, surroundings, verbosity: verbosity.saturating_add(verbose) };
        for warning in std::mem::take(&mut session.settings.warnings) {
            session.ui.warning(&warning);
        }
        if session.verbosity > 0 {
            match &session.settings.file {
                Some(file) => {
                    session.ui.note(&format!("Using {} as config file", file.display()), crate::ui::Style::Quiet);
                }
                None => session.ui.note("No config file found; using defaults", crate::ui::Style::Quiet),
            }
            for note in std::mem::take(&mut session.settings.notes) {
                session.ui.note(&note, crate::ui::Style::Quiet);
            }
        }
        Ok(session)
    }

    /// Loads the inventory, chooses hosts, and reads variables.
    pub fn fleet(&mut self, hosts: &InventoryArgs, variables: &VariableArgs) -> Result<Fleet> {
        let keyring = Arc::new(self.keyring(&variables.vault)?);
        let extra = Arc::new(extra_vars::parse(&variables.extra_vars, &keyring, self.merges_maps()?)?);
        let (inventory, sources, reload) = self.inventory(&hosts.inventory, &extra, &keyring)?;
        let limit = match &hosts.limit {
            Some(text) if !text.trim().is_empty() => Some(inventory.limit(text)?),
            _ => None,
        };
        let load = self.load_options(&extra, keyring)?;
        Ok(Fleet { inventory, limit, sources, reload, extra, load })
    }

    /// True if maps of several levels are merged.
    pub fn merges_maps(&self) -> Result<bool> {
        match self.settings.text("hash_behaviour").as_deref() {
            Some("replace") => Ok(false),
            Some("merge") => Ok(true),
            _ => Err(self.settings.wants("hash_behaviour", "replace or merge")),
        }
    }

    /// Where playbooks and roles are looked for, as settings say.
    pub fn load_options(&self, extra: &Arc<Map>, keyring: Arc<Keyring>) -> Result<LoadOptions> {
        let settings = &self.settings;
        let paths = |key| settings.paths(key, ':', &self.surroundings);
        let has_old_name = !settings.is_set("collections_path") && settings.is_set("collections_paths");
        Ok(LoadOptions {
            roles_path: paths("roles_path"),
            library: paths("library"),
            collections_path: paths(if has_old_name { "collections_paths" } else { "collections_path" }),
            play_defaults: Arc::new(self.play_defaults()?),
            extra_vars: Arc::clone(extra),
            private_role_vars: self
                .settings
                .is_set("private_role_vars")
                .then(|| self.settings.flag("private_role_vars").unwrap_or(false)),
            keyring,
            ..LoadOptions::default()
        })
    }

    /// What the settings say in place of plays that do not say it.
    fn play_defaults(&self) -> Result<Vec<(&'static str, Value)>> {
        let settings = &self.settings;
        let mut defaults = Vec::new();
        for name in ["any_errors_fatal", "no_log"] {
            if settings.is_set(name) {
                defaults.push((name, Value::Bool(settings.flag(name)?)));
            }
        }
        for (setting, keyword) in
            [("task_timeout", "timeout"), ("remote_port", "port"), ("gather_timeout", "gather_timeout")]
        {
            if settings.is_set(setting) {
                defaults.push((keyword, Value::from(settings.number(setting)? as usize)));
            }
        }
        for name in ["become_exe", "become_flags", "fact_path", "gather_subset"] {
            if let Some(text) = settings.text(name) {
                defaults.push((name, Value::from(text)));
            }
        }
        Ok(defaults)
    }

    /// The inventory of `-i`, or else of the settings, or else `./inventory` or `/etc/ansible/hosts`.
    pub fn inventory(
        &mut self,
        given: &[String],
        extra: &Arc<Map>,
        keyring: &Arc<Keyring>,
    ) -> Result<(Inventory, Vec<PathBuf>, Reload)> {
        let sources: Vec<String> = if !given.is_empty() {
            given.to_vec()
        } else if self.settings.is_set("inventory") {
            let text = self.settings.text("inventory").unwrap_or_default();
            if text.trim_end().ends_with(',') {
                vec![text]
            } else {
                let paths = self.settings.paths("inventory", ',', &self.surroundings);
                paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
            }
        } else {
            let defaults = [self.surroundings.here.join("inventory"), PathBuf::from("/etc/ansible/hosts")];
            defaults
                .iter()
                .find(|path| path.exists())
                .map(|path| path.to_string_lossy().into_owned())
                .into_iter()
                .collect()
        };
        let inventory = inventory::load_as(&sources, extra, keyring, self.reading()?)?;
        let (missing, flag) = (&inventory.missing, |key| self.settings.flag(key));
        let all_are_missing = !missing.is_empty() && missing.len() == sources.len();
        // under Ansible's names one that is missing is only a warning, as there
        let is_wrong = !self.ui.speaks_as_ansible()
            || flag("any_unparsed_is_failed")?
            || all_are_missing && flag("unparsed_is_failed")?;
        if let Some(error) = missing.first()
            && is_wrong
        {
            return Err(error.clone());
        }
        for warning in missing.iter().chain(&inventory.warnings) {
            self.ui.doubt(warning);
        }
        if inventory.hosts().next().is_none() {
            if missing.len() == sources.len() {
                self.ui.warning("No inventory was parsed, only implicit localhost is available");
            } else if flag("localhost_warning")? {
                self.ui.warning(
                    "provided hosts list is empty, only localhost is available. Note that the implicit localhost does \
                     not match 'all'",
                );
            }
        }
        let paths = sources
            .iter()
            .map(
                |source| if source.contains(',') { PathBuf::from(source) } else { self.surroundings.here.join(source) },
            )
            .collect();
        let (extra, keyring) = (Arc::clone(extra), Arc::clone(keyring));
        let reading = self.reading()?;
        let reload: Reload = Box::new(move || inventory::load_as(&sources, &extra, &keyring, reading));
        Ok((inventory, paths, reload))
    }

    /// How inventories are read: under Ansible's names one that cannot be read is only a warning, as there.
    fn reading(&self) -> Result<Reading> {
        let as_ansible = self.ui.speaks_as_ansible();
        let names = self.settings.text("force_valid_group_names").unwrap_or_default();
        let group_names = match names.to_ascii_lowercase().as_str() {
            "never" if !as_ansible && !self.settings.is_set("force_valid_group_names") => GroupNames::Ignore,
            "never" => GroupNames::Never,
            "always" => GroupNames::Always,
            "ignore" => GroupNames::Ignore,
            "silently" => GroupNames::Silently,
            _ => return Err(self.settings.wants("force_valid_group_names", "never, always, ignore or silently")),
        };
        let lenient = as_ansible && !self.settings.flag("any_unparsed_is_failed")?;
        Ok(Reading {
            group_names,
            lenient,
            merges_maps: self.merges_maps()?,
            wants_one: self.settings.flag("unparsed_is_failed")?,
        })
    }

    /// The options of a run, from the command line and, below it, the settings.
    pub fn options(&self, run: &RunArgs, reach: &ConnectionArgs, limit: Option<String>) -> Result<Options> {
        let settings = &self.settings;
        let window = match std::env::var("TRIMTAB_WINDOW") {
            Ok(text) => text
                .trim()
                .parse()
                .ok()
                .filter(|window| *window > 0)
                .ok_or_else(|| Error::input(format!("TRIMTAB_WINDOW wants a number above 0, got `{text}`")))?,
            Err(_) => DEFAULT_WINDOW,
        };
        let gathering = match settings.text("gathering").as_deref() {
            Some("implicit") => Gathering::Implicit,
            Some("explicit") => Gathering::Explicit,
            Some("smart") => Gathering::Smart,
            _ => return Err(settings.wants("gathering", "implicit, explicit or smart")),
        };
        let forks = match run.forks {
            Some(0) => return Err(Error::usage("`--forks` wants a number above 0")),
            Some(forks) => forks,
            None => settings.number("forks")?,
        };
        let privilege = PrivilegeDefaults {
            enabled: reach.r#become || settings.flag("become")?,
            method: reach.become_method.clone().or(settings.text("become_method")).unwrap_or_default(),
            user: reach.become_user.clone().or(settings.text("become_user")).unwrap_or_default(),
            password: None,
        };
        if !matches!(privilege.method.rsplit('.').next(), Some("sudo" | "su")) {
            return Err(Error::usage(format!("`{}` is no way to become another user", privilege.method))
                .hint("known are sudo and su"));
        }
        let options = Options {
            check: run.check,
            diff: run.diff || settings.flag("always")?,
            verbosity: self.verbosity,
            window,
            forks: usize::try_from(forks).unwrap_or(usize::MAX).min(tokio::sync::Semaphore::MAX_PERMITS),
            tags: Vec::new(),
            skip_tags: Vec::new(),
            force_handlers: settings.flag("force_handlers")?,
            error_on_missing_handler: settings.flag("error_on_missing_handler")?,
            pattern_mismatch: match settings.text("host_pattern_mismatch").as_deref() {
                Some("ignore") => PatternMismatch::Ignored,
                Some("warning") => PatternMismatch::Warning,
                Some("error") => PatternMismatch::Error,
                _ => return Err(settings.wants("host_pattern_mismatch", "ignore, warning or error")),
            },
            limit,
            gathering,
            inject_facts: settings.flag("inject_facts_as_vars")?,
            fact_cache: self.fact_cache()?,
            debugger: settings.flag("enable_task_debugger")? || settings.text("strategy").as_deref() == Some("debug"),
            debugger_ignores_errors: settings.flag("task_debugger_ignore_errors")?,
            step: false,
            flush_cache: false,
            free: crate::engine::run::is_free(&settings.text("strategy").unwrap_or_default()),
            connection: self.connection(reach)?,
            privilege,
            roles_path: settings.paths("roles_path", ':', &self.surroundings),
            library: self.library(&run.module_path),
            records: None,
        };
        Ok(options)
    }

    /// Directories with modules of one's own: of `--module-path`, then of the settings.
    pub fn library(&self, given: &[String]) -> Vec<PathBuf> {
        let given = given.iter().flat_map(|paths| paths.split(':')).filter(|path| !path.is_empty());
        let given = given.map(|path| self.surroundings.here.join(crate::template::expand_home(path)));
        given.chain(self.settings.paths("library", ':', &self.surroundings)).collect()
    }

    /// Where facts are kept between runs.
    fn fact_cache(&self) -> Result<Option<FactCache>> {
        let settings = &self.settings;
        let plugin = settings.text("fact_caching").unwrap_or_default();
        match plugin.rsplit('.').next().unwrap_or_default() {
            "jsonfile" => {}
            // nothing is kept in databases and the like
            _ => return Ok(None),
        }
        let mut directories = settings.paths("fact_caching_connection", '\0', &self.surroundings);
        let Some(directory) = directories.pop() else {
            return Err(Error::input("`fact_caching = jsonfile` needs a directory")
                .hint("name it by `fact_caching_connection`, or by ANSIBLE_CACHE_PLUGIN_CONNECTION"));
        };
        let seconds = settings.number("fact_caching_timeout")?;
        Ok(Some(FactCache {
            directory,
            prefix: settings.text("fact_caching_prefix").unwrap_or_default(),
            timeout: (seconds > 0).then(|| Duration::from_secs(seconds)),
        }))
    }

    fn connection(&self, reach: &ConnectionArgs) -> Result<ConnectionDefaults> {
        let settings = &self.settings;
        let connection = reach.connection.clone().or(settings.text("transport")).unwrap_or_default();
        let connection = match connection.rsplit('.').next().unwrap_or_default() {
            "ssh" | "smart" | "paramiko" | "paramiko_ssh" => "ssh".to_owned(),
            "local" => "local".to_owned(),
            other => {
                return Err(Error::usage(format!("there is no connection `{other}`"))
                    .suggest(other, ["ssh", "local"])
                    .hint("known are ssh and local"));
            }
        };
        let mut ssh_args = Vec::new();
        for text in [
            settings.text("ssh_args"),
            reach.ssh_common_args.clone().or(settings.text("ssh_common_args")),
            reach.ssh_extra_args.clone().or(settings.text("ssh_extra_args")),
        ]
        .into_iter()
        .flatten()
        {
            let words = crate::playbook::free_form::split_words(&text)?;
            ssh_args.extend(words.iter().map(|word| crate::playbook::free_form::unquote(word.trim()).to_owned()));
        }
        let host_key_checking = match settings.text("host_key_checking").as_deref() {
            Some("accept-new") => HostKeyChecking::AcceptNew,
            _ if settings.flag("host_key_checking")? => HostKeyChecking::Strict,
            _ => HostKeyChecking::Off,
        };
        let seconds = match reach.timeout {
            Some(seconds) => seconds,
            None => settings.number("timeout")?,
        };
        let private_key_file = match &reach.private_key {
            Some(file) => Some(file.clone()),
            None => {
                settings.path("private_key_file", &self.surroundings).map(|path| path.to_string_lossy().into_owned())
            }
        };
        Ok(ConnectionDefaults {
            connection,
            user: reach.user.clone().or(settings.text("remote_user")),
            password: None,
            private_key_file,
            ssh_args,
            host_key_checking,
            timeout: Duration::from_secs(seconds.max(1)),
        })
    }

    /// Says at `-v` which options of Ansible were taken without effect, and why.
    pub fn say_what_has_no_effect(&mut self, run: &RunArgs, reach: &ConnectionArgs) {
        if self.verbosity == 0 {
            return;
        }
        for (given, option, why) in [
            (!run.module_path.is_empty(), "--module-path", "modules in Python cannot run"),
            (reach.scp_extra_args.is_some(), "--scp-extra-args", "files travel over the connection itself"),
            (reach.sftp_extra_args.is_some(), "--sftp-extra-args", "files travel over the connection itself"),
        ] {
            if given {
                self.ui.note(&format!("`{option}` is ignored: {why}"), crate::ui::Style::Quiet);
            }
        }
    }

    /// Asks for passwords, or reads their files. To be done last: nobody wants to type one for nothing.
    pub fn passwords(&self, options: &mut Options, reach: &ConnectionArgs) -> Result<()> {
        passwords::fill(options, reach, &self.settings, &self.surroundings)
    }

    pub fn look(&self) -> Result<Look> {
        Ok(Look {
            verbosity: self.verbosity,
            shows_skipped: self.settings.flag("display_skipped_hosts")?,
            shows_ok: self.settings.flag("display_ok_hosts")?,
            shows_custom_stats: self.settings.flag("show_custom_stats")?,
            diff_context: self.settings.number("context")?.min(1000) as usize,
        })
    }

    /// The format of the report: of `--output`, or else of the callback that is set.
    pub fn format(&mut self, output: Option<&str>) -> Result<&'static report::Format> {
        if let Some(name) = output {
            return report::format(name);
        }
        let callback = self.settings.text("stdout_callback").unwrap_or_default();
        Ok(report::format_of_callback(&callback).unwrap_or_else(|| {
            if self.verbosity > 0 {
                let text = format!("the callback `{callback}` is not known here; the report is that of `default`");
                self.ui.note(&text, crate::ui::Style::Quiet);
            }
            &report::FORMATS[0]
        }))
    }

    /// Reads the variables of all hosts that plays choose, so that a mistake in them stops nothing halfway.
    pub fn check_variables(&self, fleet: &mut Fleet, plays: &[Arc<Play>]) -> Result<()> {
        let mut errors: Vec<Error> = Vec::new();
        for play in plays {
            fleet.inventory.set_playbook_directory(&play.directory);
            for host in hosts_of(play, fleet)? {
                if let Err(error) = fleet.inventory.host_layers(host)
                    && !errors.iter().any(|known| known.to_string() == error.to_string())
                {
                    errors.push(error);
                }
            }
        }
        Error::collect(errors).map_or(Ok(()), Err)
    }

    /// Runs plays, reports, and gives the exit code.
    pub fn run(
        &mut self,
        options: Options,
        fleet: Fleet,
        plays: Vec<Arc<Play>>,
        playbooks: &[(String, usize)],
        format: &report::Format,
        recording: Recording,
    ) -> Result<u8> {
        let planner = recording.planner.clone();
        let journalist = match &planner {
            Some(_) => None,
            None => self.record(recording, &fleet.sources, options.check)?,
        };
        let mut report = (format.new)(self.look()?);
        let magic = magic::variables(&options, &self.settings, &fleet.sources)?;
        let vars = Arc::new(RunVars {
            inject_facts: options.inject_facts,
            extra: fleet.extra,
            magic,
            warnings: Default::default(),
            merges_maps: self.merges_maps()?,
            settings: Arc::new(constants::values(&self.settings, &self.surroundings)?),
            results: match self.settings.is_set("jinja2_native") {
                false => Results::Typed,
                true if self.settings.flag("jinja2_native")? => Results::Spelled,
                true => Results::Text,
            },
            keyring: Arc::clone(&fleet.load.keyring),
        });
        let (sender, mut events) = mpsc::unbounded_channel();
        for (path, plays) in playbooks {
            // the receiver lives as long as this function
            let _ = sender.send(Event::PlaybookStarted { path: path.clone(), plays: *plays });
        }
        let mut left: usize = playbooks.iter().map(|(_, plays)| plays).sum();
        let left: Vec<usize> = playbooks
            .iter()
            .map(|(_, plays)| {
                left -= plays;
                left
            })
            .filter(|left| *left > 0)
            .collect();
        let inventory = Arc::new(fleet.inventory);
        let run = Run::new(options, fleet.load, inventory, fleet.reload, vars, sender, Box::new(prompt::ask));
        if let Some(journalist) = &journalist {
            run.record_with(Arc::clone(journalist) as Arc<dyn Recorder>);
        }
        if let Some(planner) = &planner {
            run.record_with(Arc::clone(planner) as Arc<dyn Recorder>);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::system(format!("cannot start threads: {error}")))?;
        let ui = &mut self.ui;
        let limit = fleet.limit;
        let mut teller = Teller::default();
        let hear = |event: &Event| planner.iter().for_each(|planner| planner.hear(event));
        let mut tell = |event: Event, ui: &mut Ui| match event {
            Event::Question(question) => {
                ui.flush();
                question.answer(crate::ui::ask_line(&question.text));
            }
            event => teller.tell(event, report.as_mut(), ui),
        };
        let ended = runtime.block_on(async {
            let mut work = tokio::spawn(async move { run_plays(&run, &plays, &left, limit.as_ref()).await });
            let ended = loop {
                tokio::select! {
                    biased;
                    event = events.recv() => match event {
                        Some(event) => {
                            hear(&event);
                            tell(event, ui);
                            while let Ok(event) = events.try_recv() {
                                hear(&event);
                                tell(event, ui);
                            }
                            ui.flush();
                        }
                        None => break Ended::of((&mut work).await),
                    },
                    ended = &mut work => break Ended::of(ended),
                    _ = tokio::signal::ctrl_c() => {
                        work.abort();
                        break Ended::Interrupted;
                    }
                }
            };
            while let Ok(event) = events.try_recv() {
                hear(&event);
                tell(event, ui);
            }
            ended
        });
        // an error before the first play leaves nothing to report
        let exit_code = match &ended {
            Ended::Done(Err(_)) if !teller.has_begun() => 0,
            _ => teller.end(report.as_mut(), ui).recap.exit_code(),
        };
        // walks that still wait for a host are not waited for
        runtime.shutdown_background();
        let ended = match ended {
            Ended::Done(Ok(())) => Ok(exit_code),
            Ended::Done(Err(error)) => Err(error),
            Ended::Interrupted => {
                ui.note("interrupted: what was under way may be half done", crate::ui::Style::Warning);
                Ok(INTERRUPTED)
            }
        };
        if let Some(journalist) = journalist {
            let code = ended.as_ref().map_or_else(|error| error.kind().exit_code(), |code| *code);
            journalist.close(code)?;
        }
        ended
    }
}

/// How the work of a run came to its end.
enum Ended {
    Done(Result<()>),
    Interrupted,
}

impl Ended {
    fn of(joined: std::result::Result<Result<()>, tokio::task::JoinError>) -> Ended {
        Ended::Done(joined.unwrap_or_else(|error| {
            Err(Error::new(Kind::Internal, format!("a fault of trimtab itself ended the run: {error}")))
        }))
    }
}

/// The hosts that a play will run on, as far as that is known before the run.
pub fn hosts_of(play: &Play, fleet: &Fleet) -> Result<Vec<HostId>> {
    let patterns = patterns_of(play, fleet);
    if patterns.iter().any(|pattern| crate::value::has_template_marks(pattern)) {
        return Ok(fleet.inventory.hosts().map(|(id, _)| id).collect());
    }
    let mut hosts = fleet.inventory.select(&patterns)?.hosts;
    if let Some(limit) = &fleet.limit {
        hosts.retain(|host| limit.contains(host));
    }
    Ok(hosts)
}

/// The patterns of a play; those that use extra variables rendered.
pub fn patterns_of(play: &Play, fleet: &Fleet) -> Vec<String> {
    let scope = super::scope::ExtraScope { extra: Arc::clone(&fleet.extra), play: Arc::clone(&play.vars) };
    let context = scope.context().with_keyring(Arc::clone(&fleet.load.keyring));
    let value = context.value(&play.hosts.value).unwrap_or_else(|_| play.hosts.value.clone());
    match &value {
        crate::value::Value::List(items) => items.iter().map(|item| item.to_text().into_owned()).collect(),
        single => vec![single.to_text().into_owned()],
    }
}

/// The directory that stands for a playbook's where there is none.
pub fn playbook_directory(given: Option<&str>, settings: &Settings, surroundings: &Surroundings) -> PathBuf {
    match given {
        Some(path) => surroundings.here.join(Path::new(path)),
        None => settings.path("playbook_dir", surroundings).unwrap_or_else(|| surroundings.here.clone()),
    }
}
