//! What a task asks of a user, and the change that brings it about. Pure.

use crate::connect::shell::{Response, quote};
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Read, Step};

use super::Args;
use super::accounts::{FindUser, GroupEntry, ShadowEntry, UserEntry, check_name, line_of, written};
use super::file_common::account::Account;
use super::file_common::path::clean;
use super::group::number;
use super::programs::{command, step};

/// What the arguments ask for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub name: String,
    pub present: bool,
    uid: Option<u32>,
    non_unique: bool,
    pub group: Option<String>,
    /// Names or numbers.
    pub groups: Option<Vec<String>>,
    pub append: bool,
    comment: Option<String>,
    pub home: Option<String>,
    pub create_home: bool,
    pub move_home: bool,
    skeleton: Option<String>,
    shell: Option<String>,
    pub password: Option<String>,
    update_password: bool,
    lock: Option<bool>,
    /// Options of chage with their values: `-m`, `-M`, `-W`, `-I`.
    days: Vec<(char, i64)>,
    /// The day on which the account ends; `Some(None)`: never.
    expire: Option<Option<i64>>,
    pub system: bool,
    /// For useradd: `UMASK`, `UID_MIN`, `UID_MAX`.
    defaults: Vec<(&'static str, String)>,
    seuser: Option<String>,
    pub force: bool,
    pub remove: bool,
    ignored: Vec<&'static str>,
}

/// What is there.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub user: Option<UserEntry>,
    pub shadow: ShadowEntry,
    pub all_groups: Vec<GroupEntry>,
    /// A group has the user's name.
    pub has_own_group: bool,
    /// The groups that `group` and `groups` mean.
    pub group: Option<Account>,
    pub groups: Vec<Account>,
    /// There is something where the home is to be.
    pub has_home: bool,
}

/// The change, and the user afterwards as far as it is known.
#[derive(Debug, Default)]
pub struct Planned {
    pub change: Option<Change>,
    pub user: Option<UserEntry>,
}

impl Wanted {
    pub fn parse(args: &Args) -> Result<Wanted, Failure> {
        if args.bool("local") {
            return Err(Failure::new(
                "`local: true` is not supported: it means the programs of libuser; useradd, which is used without it, \
                 changes the files of the host too",
            ));
        }
        let name = args.text("name");
        check_name("user", name)?;
        let text = |name: &str| args.str(name).map(str::to_owned);
        for name in ["comment", "shell", "home", "password", "group"] {
            if args.str(name).is_some_and(|text| text.contains([':', '\n'])) {
                return Err(Failure::new(format!("`{name}` has a colon or a line break, which passwd(5) cannot hold")));
            }
        }
        let days = [
            ('m', "password_expire_min"),
            ('M', "password_expire_max"),
            ('W', "password_expire_warn"),
            ('I', "password_expire_account_disable"),
        ];
        let defaults = [("UMASK", "umask"), ("UID_MIN", "uid_min"), ("UID_MAX", "uid_max")];
        let value = |name: &str| args.get(name).map(|value| value.to_text().into_owned());
        let expire = args.float("expires").map(|seconds| (seconds >= 0.0).then(|| (seconds / 86_400.0).floor() as i64));
        Ok(Wanted {
            name: name.to_owned(),
            present: args.text("state") == "present",
            uid: number(args, "uid")?,
            non_unique: args.bool("non_unique"),
            group: text("group"),
            groups: args.has("groups").then(|| args.list("groups").into_iter().filter(|g| !g.is_empty()).collect()),
            append: args.bool("append"),
            comment: text("comment"),
            home: args.str("home").map(clean_home),
            create_home: args.bool("create_home"),
            move_home: args.bool("move_home"),
            skeleton: text("skeleton"),
            shell: text("shell"),
            password: text("password"),
            update_password: args.text("update_password") == "always",
            lock: args.optional_bool("password_lock"),
            days: days.into_iter().filter_map(|(option, name)| Some((option, args.int(name)?))).collect(),
            expire,
            system: args.bool("system"),
            defaults: defaults.into_iter().filter_map(|(key, name)| Some((key, value(name)?))).collect(),
            seuser: text("seuser"),
            force: args.bool("force"),
            remove: args.bool("remove"),
            ignored: ["hidden", "login_class", "profile", "authorization", "role"]
                .into_iter()
                .filter(|name| args.has(name))
                .collect(),
        })
    }

    /// What should be said whatever happens.
    pub fn warnings(&self, seen: &Seen) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.password.as_deref().is_some_and(|password| !is_hash(password)) {
            warnings.push(
                "The input password appears not to have been hashed. The 'password' argument must be encrypted for \
                 this module to work properly."
                    .to_owned(),
            );
        }
        if self.append && self.groups.is_none() {
            warnings
                .push("'append' is set, but no 'groups' are specified. Use 'groups' for appending new groups.".into());
        }
        if self.lock == Some(false)
            && seen.user.is_some()
            && is_empty_lock(&seen.shadow.hash)
            && !self.sets_password(seen)
        {
            warnings.push(format!("user {} has no password that could be unlocked", self.name));
        }
        let ignored = |name: &&str| format!("`{name}` means nothing on Linux and is ignored");
        warnings.extend(self.ignored.iter().map(ignored));
        warnings
    }

    pub fn plan(&self, seen: &Seen, check: bool) -> Result<Planned, Failure> {
        match (&seen.user, self.present) {
            (None, false) => Ok(Planned::default()),
            (None, true) => Ok(self.create(seen, check)),
            (Some(user), true) => Ok(self.modify(user, seen, check)),
            (Some(user), false) => Ok(self.delete(user, seen, check)),
        }
    }

    fn what(&self) -> String {
        format!("user {}", self.name)
    }

    fn show(&self, before: &str, after: &str) -> Difference {
        Difference::new(self.what(), before, after)
    }

    /// The owners of files are shown by name, so a name that comes or goes alters what is seen of any file; in check
    /// mode that would leave nothing known for a matter of files that nobody owns.
    fn of_everything(&self, check: bool) -> Footprint {
        if check { written().and(self.homes(None)) } else { Footprint::Everything }
    }

    fn homes(&self, user: Option<&UserEntry>) -> Footprint {
        let own = self.home.clone().unwrap_or_else(|| format!("/home/{}", self.name));
        let mut footprint = Footprint::tree(own);
        if let Some(user) = user {
            footprint = footprint.and(Footprint::tree(user.home.as_str()));
        }
        footprint.and(Footprint::path(format!("/var/mail/{}", self.name)))
    }

    fn create(&self, seen: &Seen, check: bool) -> Planned {
        let mut words: Vec<String> = vec!["useradd".into()];
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if let Some(uid) = self.uid {
            add("-u", uid.to_string());
        }
        if let Some(seuser) = &self.seuser {
            add("-Z", seuser.clone());
        }
        if let Some(group) = &seen.group {
            add("-g", group.id.to_string());
        }
        let groups: Vec<&str> = seen.groups.iter().map(|group| group.name.as_str()).collect();
        if !groups.is_empty() {
            add("-G", groups.join(","));
        }
        for (option, value) in [("-c", &self.comment), ("-d", &self.home), ("-s", &self.shell)] {
            if let Some(value) = value {
                add(option, value.clone());
            }
        }
        if let Some(Some(day)) = self.expire {
            add("-e", date(day));
        }
        if let Some(skeleton) = self.skeleton.as_ref().filter(|_| self.create_home) {
            add("-k", skeleton.clone());
        }
        for (key, value) in self.defaults.iter().filter(|(key, _)| *key != "UMASK" || self.create_home) {
            add("-K", format!("{key}={value}"));
        }
        let flags = [
            ("-o", self.uid.is_some() && self.non_unique),
            // a group of the user's name exists, so none is made
            ("-N", seen.group.is_none() && seen.has_own_group),
            ("-m", self.create_home),
            ("-M", !self.create_home),
            ("-r", self.system),
        ];
        words.extend(flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag.to_owned()));
        words.push(self.name.clone());
        let mut code = command(words.iter().map(String::as_str));
        if let Some(home) = self.home.as_ref().filter(|_| self.create_home) {
            // older ones make the last directory only
            code = format!("mkdir -p {} && {code}", quote(super::file_common::path::parent(home)));
        }
        let mut change = Change::uncertain(self.what(), self.of_everything(check)).step(step(code));
        if let Some(password) = &self.password {
            let lock = if self.lock == Some(true) && !password.starts_with('!') { "!" } else { "" };
            change = change.step(self.password_step(&format!("{lock}{password}")));
        }
        if let Some(days) = self.days_step(&ShadowEntry::default(), false) {
            change = change.step(days);
        }
        let mut shown = String::new();
        for (key, value) in [
            ("uid", self.uid.map(|uid| uid.to_string())),
            ("group", seen.group.as_ref().map(|group| group.name.clone())),
            ("groups", (!groups.is_empty()).then(|| groups.join(","))),
            ("comment", self.comment.clone()),
            ("home", self.home.clone()),
            ("shell", self.shell.clone()),
        ] {
            if let Some(value) = value {
                shown.push_str(&format!("{key}: {value}\n"));
            }
        }
        if shown.is_empty() {
            shown.push_str("as the host chooses\n");
        }
        let change = change
            .step(step(line_of("/etc/passwd", &self.name)))
            .difference(self.show("", &shown))
            // the home stays: somebody may have put something there
            .inverse(Inverse::Steps(vec![step(command(["userdel", &self.name]))]));
        Planned { change: Some(change), user: None }
    }

    fn delete(&self, user: &UserEntry, seen: &Seen, check: bool) -> Planned {
        let mut words = vec!["userdel"];
        if self.force {
            words.push("-f");
        }
        if self.remove {
            words.push("-r");
        }
        words.push(&self.name);
        let footprint = self.of_everything(check).and(self.homes(Some(user)));
        let inverse = if self.remove {
            Inverse::None(format!("the home directory of {} was removed with it", self.name))
        } else {
            Inverse::Steps(self.restoration(user, seen))
        };
        let change = Change::certain(self.what(), footprint)
            .step(step(command(words)))
            .leaves(FindUser(self.name.clone()).query(), Response { code: Some(2), ..Response::default() })
            .difference(self.show(&self.described(user, seen), ""))
            .inverse(inverse);
        Planned { change: Some(change), user: None }
    }

    /// The steps that bring a removed user back, with its group if that went with it.
    fn restoration(&self, user: &UserEntry, seen: &Seen) -> Vec<Step> {
        let mut code = String::new();
        if let Some(group) = seen.all_groups.iter().find(|group| group.gid == user.gid) {
            let (gid, name) = (group.gid, quote(&group.name));
            code =
                format!("{{ {} | grep -q . || groupadd -o -g {gid} {name}; }} && ", line_of("/etc/group", &group.name));
        }
        let groups =
            memberships(&self.name, seen).iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(",");
        let (uid, gid) = (user.uid.to_string(), user.gid.to_string());
        let mut words = vec!["useradd", "-o", "-M", "-u", &uid, "-g", &gid, "-c", &user.comment, "-d", &user.home];
        words.extend(["-s", &user.shell]);
        if !groups.is_empty() {
            words.extend(["-G", &groups]);
        }
        words.push(&self.name);
        code.push_str(&command(words));
        let mut steps = vec![step(code)];
        if !seen.shadow.hash.is_empty() {
            steps.push(self.password_step(&seen.shadow.hash));
            steps.push(self.aging_step(&seen.shadow));
        }
        steps
    }

    fn modify(&self, user: &UserEntry, seen: &Seen, check: bool) -> Planned {
        let mut after = user.clone();
        let mut forth: Vec<String> = Vec::new();
        let mut back: Vec<String> = Vec::new();
        let mut lines = (String::new(), String::new());
        let mut tell = |key: &str, before: &str, after: &str| {
            lines.0.push_str(&format!("{key}: {before}\n"));
            lines.1.push_str(&format!("{key}: {after}\n"));
        };
        let mut footprint = written();
        if let Some(uid) = self.uid.filter(|uid| *uid != user.uid) {
            tell("uid", &user.uid.to_string(), &uid.to_string());
            forth.extend(["-u".into(), uid.to_string()]);
            if self.non_unique {
                forth.push("-o".into());
            }
            back.extend(["-o".into(), "-u".into(), user.uid.to_string()]);
            after.uid = uid;
            footprint = footprint.and(self.of_everything(check));
        }
        if let Some(group) = seen.group.as_ref().filter(|group| group.id != user.gid) {
            tell("group", &user.gid.to_string(), &group.id.to_string());
            forth.extend(["-g".into(), group.id.to_string()]);
            back.extend(["-g".into(), user.gid.to_string()]);
            after.gid = group.id;
            footprint = footprint.and(self.homes(Some(user)));
        }
        if let Some((now, then)) = self.changed_groups(seen) {
            tell("groups", &now.join(","), &then.join(","));
            forth.extend(["-G".into(), then.join(",")]);
            back.extend(["-G".into(), now.join(",")]);
        }
        let fields = [
            ("-c", "comment", &self.comment, &mut after.comment),
            ("-s", "shell", &self.shell, &mut after.shell),
            ("-d", "home", &self.home, &mut after.home),
        ];
        for (option, key, wanted, field) in fields {
            if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != field) {
                tell(key, field, wanted);
                forth.extend([option.into(), wanted.clone()]);
                back.extend([option.into(), field.clone()]);
                wanted.clone_into(field);
                if option == "-d" && self.move_home {
                    forth.push("-m".into());
                    back.push("-m".into());
                    footprint = footprint.and(self.homes(Some(user)));
                }
            }
        }
        if let Some(wanted) = self.expire.filter(|wanted| *wanted != seen.shadow.expire) {
            let word = |day: Option<i64>| day.map(date).unwrap_or_default();
            tell("expires", &word(seen.shadow.expire), &word(wanted));
            forth.extend(["-e".into(), word(wanted)]);
            back.extend(["-e".into(), word(seen.shadow.expire)]);
        }
        let mut steps = Vec::new();
        let mut undo = Vec::new();
        let sets_password = self.sets_password(seen);
        let locked = seen.shadow.hash.starts_with('!');
        match self.lock {
            _ if sets_password => {}
            Some(true) if !locked => {
                tell("password_lock", "no", "yes");
                forth.push("-L".into());
            }
            Some(false) if locked && !is_empty_lock(&seen.shadow.hash) => {
                tell("password_lock", "yes", "no");
                forth.push("-U".into());
            }
            _ => {}
        }
        let touches_hash = sets_password || forth.iter().any(|word| word == "-L" || word == "-U");
        if !forth.is_empty() {
            let usermod = |words: &[String]| {
                let words = ["usermod"].into_iter().chain(words.iter().map(String::as_str)).chain([self.name.as_str()]);
                format!("{} && {}", command(words), line_of("/etc/passwd", &self.name))
            };
            steps.push(step(usermod(&forth)).expect(after.line()));
            if !back.is_empty() {
                undo.push(step(usermod(&back)));
            }
        }
        if sets_password && let Some(password) = &self.password {
            tell("password", "(hidden)", "(hidden, another)");
            let lock = if self.lock == Some(true) && !password.starts_with('!') { "!" } else { "" };
            steps.push(self.password_step(&format!("{lock}{password}")));
        }
        if touches_hash {
            undo.push(self.password_step(&seen.shadow.hash));
        }
        if let Some(days) = self.days_step(&seen.shadow, true) {
            let word = |days: Option<i64>| days.map_or_else(|| "-1".to_owned(), |days| days.to_string());
            for (option, wanted) in self.changed_days(&seen.shadow) {
                tell(day_word(option), &word(day_of(&seen.shadow, option)), &wanted.to_string());
            }
            steps.push(days);
            undo.push(self.aging_step(&seen.shadow));
        }
        let makes_home = self.create_home && !seen.has_home && !after.home.is_empty();
        let moves = self.move_home && self.home.as_ref().is_some_and(|home| *home != user.home);
        if makes_home && !moves {
            tell("home directory", "missing", "made");
            steps.push(self.home_step(&after));
            undo.push(step(format!("rmdir {} 2>/dev/null || :", quote(&after.home))));
            footprint = footprint.and(Footprint::tree(after.home.as_str()));
        }
        if steps.is_empty() {
            return Planned { change: None, user: Some(user.clone()) };
        }
        undo.reverse();
        let mut change = Change::certain(self.what(), footprint)
            .difference(self.show(&lines.0, &lines.1))
            .inverse(Inverse::Steps(undo))
            .leaves(FindUser(self.name.clone()).query(), Response::output(format!("{}\n", after.line())));
        change.steps = steps;
        if makes_home && moves {
            // nothing to move leaves nothing there, so the move tells
            change.certain = false;
            change.effects.clear();
        }
        Planned { change: Some(change), user: Some(after) }
    }

    fn sets_password(&self, seen: &Seen) -> bool {
        let bare = |hash: &str| hash.trim_start_matches('!').to_owned();
        self.update_password
            && self.password.as_deref().is_some_and(|password| bare(password) != bare(&seen.shadow.hash))
    }

    /// The user's groups but the primary, now and then, if they differ.
    fn changed_groups(&self, seen: &Seen) -> Option<(Vec<String>, Vec<String>)> {
        self.groups.as_ref()?;
        let now: Vec<String> = memberships(&self.name, seen).iter().map(|group| group.name.clone()).collect();
        let mut then: Vec<String> = if self.append { now.clone() } else { Vec::new() };
        for group in &seen.groups {
            let is_primary = seen.user.as_ref().is_some_and(|user| user.gid == group.id && self.group.is_none())
                || seen.group.as_ref().is_some_and(|primary| primary.id == group.id);
            // membership of the primary group is not taken away, but not asked for either
            if !then.contains(&group.name) && (!is_primary || now.contains(&group.name)) {
                then.push(group.name.clone());
            }
        }
        let same = now.len() == then.len() && now.iter().all(|group| then.contains(group));
        (!same).then_some((now, then))
    }

    /// The hash travels on standard input only.
    fn password_step(&self, hash: &str) -> Step {
        step("chpasswd -e").stdin(format!("{}:{hash}\n", self.name))
    }

    fn changed_days(&self, shadow: &ShadowEntry) -> Vec<(char, i64)> {
        self.days.iter().copied().filter(|(option, days)| day_of(shadow, *option).unwrap_or(-1) != *days).collect()
    }

    fn days_step(&self, shadow: &ShadowEntry, only_changed: bool) -> Option<Step> {
        let days = if only_changed { self.changed_days(shadow) } else { self.days.clone() };
        let words: Vec<String> =
            days.iter().flat_map(|(option, days)| [format!("-{option}"), days.to_string()]).collect();
        let words = || ["chage"].into_iter().chain(words.iter().map(String::as_str)).chain([self.name.as_str()]);
        (!words().nth(2).is_none_or(str::is_empty)).then(|| step(command(words())))
    }

    /// The step that restores all ages of the password.
    fn aging_step(&self, shadow: &ShadowEntry) -> Step {
        let mut words = vec!["chage".to_owned()];
        for option in ['m', 'M', 'W', 'I', 'E'] {
            let days = day_of(shadow, option).unwrap_or(-1);
            words.extend([format!("-{option}"), days.to_string()]);
        }
        words.push(self.name.clone());
        step(command(words.iter().map(String::as_str)))
    }

    /// Makes the home as useradd does: the skeleton's files, the mode of login.defs.
    fn home_step(&self, user: &UserEntry) -> Step {
        let (home, skeleton) = (quote(&user.home), quote(self.skeleton.as_deref().unwrap_or("/etc/skel")));
        let umask = self.defaults.iter().find(|(key, _)| *key == "UMASK").map(|(_, value)| quote(value));
        step(format!(
            "m= u={}\nif [ -z \"$u\" ] && [ -r /etc/login.defs ]; then while read -r k v r; do case $k in HOME_MODE) m=$v;; \
             UMASK) u=$v;; esac; done </etc/login.defs; fi\n\
             h={home} s={skeleton}\nmkdir -p \"$h\" || exit\nif [ -d \"$s\" ]; then cp -R \"$s\"/. \"$h\" || exit; fi\n\
             chown -R {}:{} \"$h\" || exit\n[ -n \"$m\" ] || m=$(printf %o $((0777 & ~0${{u:-$(umask)}})))\n\
             chmod \"$m\" \"$h\"",
            umask.unwrap_or_default(),
            user.uid,
            user.gid
        ))
    }

    fn described(&self, user: &UserEntry, seen: &Seen) -> String {
        let groups =
            memberships(&self.name, seen).iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(",");
        let UserEntry { uid, gid, comment, home, shell, .. } = user;
        format!("uid: {uid}\ngroup: {gid}\ngroups: {groups}\ncomment: {comment}\nhome: {home}\nshell: {shell}\n")
    }
}

/// The groups in whose lists the user is.
fn memberships<'a>(name: &str, seen: &'a Seen) -> Vec<&'a GroupEntry> {
    seen.all_groups.iter().filter(|group| group.members.iter().any(|member| member == name)).collect()
}

fn day_of(shadow: &ShadowEntry, option: char) -> Option<i64> {
    match option {
        'm' => shadow.min,
        'M' => shadow.max,
        'W' => shadow.warn,
        'I' => shadow.inactive,
        _ => shadow.expire,
    }
}

fn day_word(option: char) -> &'static str {
    match option {
        'm' => "password_expire_min",
        'M' => "password_expire_max",
        'W' => "password_expire_warn",
        _ => "password_expire_account_disable",
    }
}

/// A locked password with nothing behind the lock.
fn is_empty_lock(hash: &str) -> bool {
    hash.starts_with('!') && hash.trim_start_matches('!').is_empty()
}

/// A home directory as passwd has it: no doubled or trailing slashes, else as written.
fn clean_home(home: &str) -> String {
    if home.starts_with('/') { clean(home) } else { home.to_owned() }
}

/// A day counted from 1970 as `YYYY-MM-DD`, which every useradd takes.
fn date(day: i64) -> String {
    let epoch = jiff::civil::date(1970, 1, 1);
    let span = jiff::Span::new().try_days(day);
    match span.and_then(|span| epoch.checked_add(span)) {
        Ok(date) => date.to_string(),
        Err(_) => day.to_string(),
    }
}

/// True if it looks like what crypt(3) makes, or is a word for "no password".
fn is_hash(password: &str) -> bool {
    if matches!(password, "" | "*" | "!" | "*************") {
        return true;
    }
    let fields: Vec<&str> = password.split('$').collect();
    let (Some(last), true) = (fields.last(), fields.len() >= 3) else { return false };
    let length = match fields[1] {
        "1" => Some(22),
        "5" | "y" => Some(43),
        "6" => Some(86),
        _ => None,
    };
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '/';
    !password.contains([':', '*', '!']) && last.chars().all(letters) && length.is_none_or(|length| last.len() == length)
}
