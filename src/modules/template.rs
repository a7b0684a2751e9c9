//! `ansible.builtin.template`: a Jinja2 template of the controller, rendered, is a file of the host.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::host::Failure;
use crate::template::{Context, Syntax};
use crate::value::{Map, Value, object};

use super::copy::find_source;
use super::file_common::content::Content;
use super::file_common::install::{Placement, Source, install};
use super::file_common::permissions::OWNERSHIP;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.template",
    aliases: &[],
    summary: "Renders a Jinja2 template into a file of the host",
    args: &[
        Arg::new("src", Type::Path, "the template, looked for in `templates`").required(),
        Arg::new("dest", Type::Path, "where it goes; an existing directory gets it under the template's name")
            .required(),
        Arg::new("force", Type::Bool, "replace what differs; else only make what is missing").default("true"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("validate", Type::Str, "a command that must accept the new file, `%s`, before it replaces the old"),
        Arg::new("follow", Type::Bool, "write through a symbolic link at `dest`, else replace it").default("false"),
        Arg::new("newline_sequence", Type::Str, "how lines end: \\n, \\r or \\r\\n")
            .default("\n")
            .choices(&["\n", "\r", "\r\n", "\\n", "\\r", "\\r\\n"]),
        Arg::new("block_start_string", Type::Str, "mark that begins a statement").default("{%"),
        Arg::new("block_end_string", Type::Str, "mark that ends a statement").default("%}"),
        Arg::new("variable_start_string", Type::Str, "mark that begins an expression").default("{{"),
        Arg::new("variable_end_string", Type::Str, "mark that ends an expression").default("}}"),
        Arg::new("comment_start_string", Type::Str, "mark that begins a comment").default("{#"),
        Arg::new("comment_end_string", Type::Str, "mark that ends a comment").default("#}"),
        Arg::new("trim_blocks", Type::Bool, "drop the newline behind a statement").default("true"),
        Arg::new("lstrip_blocks", Type::Bool, "drop the blanks before a statement").default("false"),
        Arg::new("output_encoding", Type::Str, "encoding of the file: utf-8 alone").default("utf-8"),
        Arg::new("mode", Type::Mode, "permissions: octal text, symbolic, or `preserve` for those of the template"),
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::Missing(&["src", "dest"], "src and dest are required")],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("dest", "the path of the file on the host"),
        ("src", "the template"),
        ("checksum", "SHA-1 of the content"),
        ("md5sum", "MD5 of the content, if it was written"),
        ("backup_file", "where the old file is kept"),
        ("mode", "permissions as four octal digits"),
        ("owner", "name of the owner; `uid` is the number"),
        ("group", "name of the group; `gid` is the number"),
        ("size", "bytes"),
        ("state", "`file`"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, .. } = invocation;
    let encoding = args.text("output_encoding").to_ascii_lowercase();
    if !matches!(encoding.as_str(), "utf-8" | "utf8" | "utf_8" | "") {
        return Err(Failure::new(format!(
            "the argument `output_encoding` is not supported for {encoding}: write utf-8"
        )));
    }
    let path = find_source(&context, "templates", args.text("src"))?;
    let source = render(&args, &context, &path)?;
    let placement = Placement::read(&host, &args).await?;
    install(&host, &args, &placement, source).await
}

/// Renders the template file.
fn render(args: &Args, context: &Context, path: &Path) -> Result<Source, Failure> {
    let refuse = |reason: String| Failure::new(format!("cannot read the template {}: {reason}", path.display()));
    let bytes = fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let meta = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    let bytes = context.keyring.open(path, bytes)?;
    let text = String::from_utf8(bytes).map_err(|error| refuse(format!("it is no UTF-8 ({error})")))?;
    let variables = variables(args, context, path, &meta)?;
    let context = context.with_variables(variables);
    // the lexer of Jinja2 knows only one kind of newline
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let rendered = context.text_with(&text, &path.to_string_lossy(), &syntax(args))?;
    let newline = match args.text("newline_sequence") {
        "\\n" => "\n",
        "\\r" => "\r",
        "\\r\\n" => "\r\n",
        other => other,
    };
    let rendered = if newline == "\n" { rendered } else { rendered.replace('\n', newline) };
    Ok(Source {
        content: Content::Bytes(rendered.into_bytes()),
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        shown: path.display().to_string(),
        mode: meta.permissions().mode() & 0o7777,
    })
}

fn syntax(args: &Args) -> Syntax {
    let pair = |start: &str, end: &str| (args.text(start).to_owned(), args.text(end).to_owned());
    Syntax {
        trim_blocks: args.bool("trim_blocks"),
        lstrip_blocks: args.bool("lstrip_blocks"),
        variable: pair("variable_start_string", "variable_end_string"),
        block: pair("block_start_string", "block_end_string"),
        comment: pair("comment_start_string", "comment_end_string"),
        ..Syntax::file()
    }
}

/// The variables that only templates have.
fn variables(args: &Args, context: &Context, path: &Path, meta: &fs::Metadata) -> Result<Map, Failure> {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let time = |time: jiff::ZonedDateTime| time.strftime("%Y-%m-%d %H:%M:%S.%6f").to_string();
    let mtime = jiff::Timestamp::new(meta.mtime(), i32::try_from(meta.mtime_nsec()).unwrap_or(0)).unwrap_or_default();
    let mut variables = object([
        ("template_host", Value::from(rustix::system::uname().nodename().to_string_lossy().into_owned())),
        ("template_path", args.text("src").into()),
        ("template_fullpath", full.display().to_string().into()),
        ("template_destpath", args.text("dest").into()),
        ("template_uid", user_name(meta.uid()).into()),
        ("template_run_date", time(jiff::ZonedDateTime::now()).into()),
        ("template_mtime", time(mtime.to_zoned_datetime(jiff::tz::TimeZone::system())).into()),
    ]);
    if context.scope.get("ansible_managed").map_err(Failure::interrupted)?.is_none() {
        variables.insert("ansible_managed".into(), "Ansible managed".into());
    }
    Ok(variables)
}

/// The name of a user of the controller, or the number if there is no name.
fn user_name(uid: u32) -> String {
    let id = uid.to_string();
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&id.as_str())).then(|| fields[0].to_owned())
    });
    found.unwrap_or(id)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
