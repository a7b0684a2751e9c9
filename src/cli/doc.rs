//! `trimtab doc`: what the tables of modules, filters, tests, lookups, keywords and settings hold.

use clap::Args;
use serde_json::{Value as Json, json};

use super::args::VerbosityArgs;
use super::doc_markdown;
use super::session::Session;
use super::settings::{Meaning, SETTINGS, Setting};
use crate::error::{Error, Result};
use crate::modules::{self, FreeForm, MODULES, Module, Rule, Support};
use crate::playbook::keywords::KEYWORDS;
use crate::report;
use crate::template;
use crate::ui::Ui;
use crate::vars::special::SPECIAL;

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct DocArgs {
    /// Modules, filters, keywords or settings, by name
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// All names of a kind, each with one line
    #[arg(short = 'l', long)]
    pub list: bool,
    /// module, filter, test, lookup, keyword, variable or setting
    #[arg(short = 't', long = "type", value_name = "KIND")]
    pub kind: Option<String>,
    /// JSON in place of text
    #[arg(short = 'j', long)]
    pub json: bool,
    /// All of a kind as a page of Markdown
    #[arg(long, requires = "kind", conflicts_with_all = ["json", "list", "names"])]
    pub markdown: bool,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// A kind of documented thing.
pub struct Kind {
    pub name: &'static str,
    /// Names with one line of help each.
    entries: fn() -> Vec<(String, String)>,
    /// Its reference page.
    pub markdown: fn() -> String,
}

pub const KINDS: &[Kind] = &[
    Kind {
        name: "module",
        entries: || MODULES.iter().map(|module| pair(module.name, module.summary)).collect(),
        markdown: doc_markdown::modules,
    },
    Kind {
        name: "filter",
        entries: || pairs(template::filter_documentation()),
        markdown: || doc_markdown::names("Filters", "filter", pairs(template::filter_documentation())),
    },
    Kind {
        name: "test",
        entries: || pairs(template::test_documentation()),
        markdown: || doc_markdown::names("Tests", "test", pairs(template::test_documentation())),
    },
    Kind {
        name: "lookup",
        entries: || pairs(template::lookup_documentation()),
        markdown: || doc_markdown::names("Lookups", "lookup", pairs(template::lookup_documentation())),
    },
    Kind {
        name: "keyword",
        entries: || KEYWORDS.iter().map(|keyword| pair(keyword.name, keyword.help)).collect(),
        markdown: doc_markdown::keywords,
    },
    Kind {
        name: "variable",
        entries: || pairs(SPECIAL.to_vec()),
        markdown: || doc_markdown::names("Special variables", "variable", pairs(SPECIAL.to_vec())),
    },
    Kind {
        name: "setting",
        entries: || SETTINGS.iter().map(|setting| pair(setting.key, setting.help)).collect(),
        markdown: doc_markdown::settings,
    },
];

fn pair(name: &str, help: &str) -> (String, String) {
    (name.to_owned(), help.to_owned())
}

fn pairs(documentation: Vec<(&'static str, &'static str)>) -> Vec<(String, String)> {
    documentation.into_iter().map(|(name, help)| pair(name, help)).collect()
}

/// Shows what was asked for.
pub fn show(session: &mut Session, args: DocArgs) -> Result<u8> {
    let kind = match args.kind.as_deref() {
        None => None,
        Some(name) => Some(KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            Error::usage(format!("there is no documentation of the kind `{name}`"))
                .suggest(name, names.iter().copied())
                .hint(format!("known are {}", names.join(", ")))
        })?),
    };
    if let (true, Some(kind)) = (args.markdown, kind) {
        session.ui.raw(&(kind.markdown)());
        return Ok(0);
    }
    if args.list || args.names.is_empty() {
        if !args.list && kind.is_none() {
            return Err(Error::usage("a name or `--list` is needed"));
        }
        list(&mut session.ui, kind.unwrap_or(&KINDS[0]), args.json);
        return Ok(0);
    }
    let mut documents = serde_json::Map::new();
    for (index, name) in args.names.iter().enumerate() {
        if args.json {
            let module = modules::find(name).ok_or_else(|| unknown(name, KINDS.iter().take(1)))?;
            documents.insert(module.name.to_owned(), module_json(module));
            continue;
        }
        if index > 0 {
            session.ui.line("");
        }
        let text = match kind {
            Some(kind) => describe(kind, name).ok_or_else(|| unknown(name, std::iter::once(kind)))?,
            None => KINDS.iter().find_map(|kind| describe(kind, name)).ok_or_else(|| unknown(name, KINDS.iter()))?,
        };
        session.ui.raw(&text);
    }
    if args.json {
        session.ui.line(&report::pretty_json(&Json::Object(documents)));
    }
    Ok(0)
}

fn unknown<'a>(name: &str, kinds: impl Iterator<Item = &'a Kind>) -> Error {
    let entries: Vec<(String, String)> = kinds.flat_map(|kind| (kind.entries)()).collect();
    let bare = entries.iter().map(|(name, _)| name.rsplit('.').next().unwrap_or(name));
    let names = entries.iter().map(|(name, _)| name.as_str()).chain(bare);
    Error::usage(format!("there is nothing about `{name}`")).suggest(name, names)
}

fn list(ui: &mut Ui, kind: &Kind, json: bool) {
    let mut entries = (kind.entries)();
    entries.sort();
    if json {
        let map = entries.into_iter().map(|(name, help)| (name, Json::from(help))).collect();
        ui.line(&report::pretty_json(&Json::Object(map)));
        return;
    }
    let width = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for (name, help) in entries {
        ui.line(&format!("{name:width$}  {help}"));
    }
}

fn describe(kind: &Kind, name: &str) -> Option<String> {
    match kind.name {
        "module" => modules::find(name).map(module_text),
        "setting" => SETTINGS.iter().find(|setting| setting.key == name).map(setting_text),
        "keyword" => KEYWORDS.iter().find(|keyword| keyword.name == name).map(|keyword| {
            let on: Vec<&str> = keyword.on.iter().map(|on| on.word()).collect();
            format!("{name} (keyword)\n  {}\n  on {}; holds {}\n", keyword.help, on.join(", "), keyword.holds.word())
        }),
        _ => {
            let (found, help) = (kind.entries)().into_iter().find(|(known, _)| known == name)?;
            Some(format!("{found} ({})\n  {help}\n", kind.name))
        }
    }
}

pub fn support(support: Support) -> &'static str {
    match support {
        Support::Full => "full",
        Support::Partial => "partial",
        Support::None => "none",
    }
}

fn module_text(module: &Module) -> String {
    let mut text = format!("{} (module)\n  {}\n", module.name, module.summary);
    if !module.aliases.is_empty() {
        text.push_str(&format!("  also: {}\n", module.aliases.join(", ")));
    }
    text.push_str(&format!("  check mode: {}; diff: {}\n", support(module.check_mode), support(module.diff)));
    if let FreeForm::Argument(name) = module.free_form {
        text.push_str(&format!("  free text is the argument `{name}`\n"));
    }
    if module.arguments().next().is_some() {
        text.push_str("\narguments:\n");
    }
    for arg in module.arguments() {
        let mut about = vec![arg.kind.word().to_owned()];
        if arg.required {
            about.push("required".to_owned());
        }
        if let Some(default) = arg.default {
            about.push(format!("default {default}"));
        }
        if !arg.choices.is_empty() {
            about.push(format!("one of {}", arg.choices.join(", ")));
        }
        if !arg.aliases.is_empty() {
            about.push(format!("also {}", arg.aliases.join(", ")));
        }
        text.push_str(&format!("  {} ({})\n      {}\n", arg.name, about.join("; "), arg.help));
    }
    for rule in module.rules {
        text.push_str(&format!("  {}\n", rule_text(rule)));
    }
    if !module.returns.is_empty() {
        text.push_str("\nreturns:\n");
        let width = module.returns.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, help) in module.returns {
            text.push_str(&format!("  {name:width$}  {help}\n"));
        }
    }
    text
}

pub fn rule_text(rule: &Rule) -> String {
    match rule {
        Rule::MutuallyExclusive(names) => format!("only one of {}", names.join(", ")),
        Rule::RequiredTogether(names) => format!("all or none of {}", names.join(", ")),
        Rule::RequiredOneOf(names) => format!("at least one of {}", names.join(", ")),
        Rule::RequiredIf(name, value, needed) => format!("with {name}={value}: {} needed", needed.join(", ")),
        Rule::Missing(names, _) => format!("{} needed", names.join(" and ")),
    }
}

fn module_json(module: &Module) -> Json {
    let args: serde_json::Map<String, Json> = module
        .arguments()
        .map(|arg| {
            let entry = json!({
                "type": arg.kind.word(),
                "required": arg.required,
                "default": arg.default,
                "choices": arg.choices,
                "aliases": arg.aliases,
                "description": arg.help,
            });
            (arg.name.to_owned(), entry)
        })
        .collect();
    let returns: serde_json::Map<String, Json> =
        module.returns.iter().map(|(name, help)| ((*name).to_owned(), Json::from(*help))).collect();
    json!({
        "name": module.name,
        "aliases": module.aliases,
        "short_description": module.summary,
        "check_mode": support(module.check_mode),
        "diff": support(module.diff),
        "options": args,
        "returns": returns,
    })
}

fn setting_text(setting: &Setting) -> String {
    let mut text = format!("{} (setting)\n  {}\n", setting.key, setting.help);
    text.push_str(match setting.meaning {
        Meaning::Honoured => "",
        Meaning::Ignored => "  ignored\n",
        Meaning::OnlyDefault => "  any other value than the default is refused\n",
    });
    let sections: Vec<String> = setting.sections.iter().map(|section| format!("[{section}]")).collect();
    text.push_str(&format!("  in ansible.cfg: {}\n", sections.join(", ")));
    if !setting.variables.is_empty() {
        text.push_str(&format!("  variables: {}\n", setting.variables.join(", ")));
    }
    if !setting.default.is_empty() {
        text.push_str(&format!("  default: {}\n", setting.default));
    }
    text
}
