//! `vars_prompt`: questions to the user.

use std::sync::Arc;

use super::scope::ExtraScope;
use crate::error::{Error, Result};
use crate::playbook::VarsPrompt;
use crate::ui;
use crate::value::{Map, Value};

/// Asks until the answer is confirmed, where that is wanted. Without a terminal the default counts.
pub fn ask(prompt: &VarsPrompt) -> Result<Value> {
    ask_by(prompt, ui::ask)
}

fn ask_by(prompt: &VarsPrompt, mut ask: impl FnMut(&str, bool) -> Result<String>) -> Result<Value> {
    let default = prompt.default.as_ref().map(|value| value.to_text().into_owned());
    let question = question(prompt, default.as_deref());
    let answer = loop {
        let answer = match ask(&question, prompt.private) {
            Ok(answer) => answer,
            Err(_) => match &default {
                Some(default) => break default.clone(),
                None => {
                    return Err(Error::input(format!("`{}` cannot be asked for: there is no terminal", prompt.name))
                        .at(&prompt.place)
                        .hint(format!("give it on the command line: `-e {}=…`, or a default", prompt.name)));
                }
            },
        };
        if prompt.confirm && answer != ask(&format!("confirm {question}"), prompt.private)? {
            continue;
        }
        break if answer.is_empty() { default.clone().unwrap_or_default() } else { answer };
    };
    match &prompt.encrypt {
        Some(scheme) => encrypt(prompt, scheme, &answer),
        // an answer is data unless the playbook says that it may be a template
        None => Ok(Value::from(answer)),
    }
}

fn question(prompt: &VarsPrompt, default: Option<&str>) -> String {
    let text = prompt.prompt.as_ref().map(|text| text.to_text().into_owned());
    let text = text.unwrap_or_else(|| prompt.name.clone());
    match default {
        Some(default) if !prompt.private && !default.is_empty() => format!("{text} [{default}]: "),
        _ => format!("{text}: "),
    }
}

fn encrypt(prompt: &VarsPrompt, scheme: &str, answer: &str) -> Result<Value> {
    let mut variables = Map::from_iter([("answer".into(), answer.into()), ("scheme".into(), scheme.into())]);
    let mut call = "answer | password_hash(scheme".to_owned();
    if let Some(salt) = &prompt.salt {
        variables.insert("salt".into(), salt.as_str().into());
        call.push_str(", salt");
    }
    call.push(')');
    let scope = ExtraScope { extra: Arc::new(variables), play: Arc::default() };
    scope.context().expression(&call).map_err(|error| Error::input(error.message().to_owned()).at(&prompt.place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Place, Source};

    fn prompt() -> VarsPrompt {
        VarsPrompt {
            name: "version".into(),
            prompt: Some("Which version".into()),
            default: None,
            private: false,
            confirm: false,
            encrypt: None,
            salt: None,
            salt_size: None,
            unsafe_text: false,
            place: Place::start(&Source::new("play.yml", "- hosts: all\n")),
        }
    }

    /// Asks with these answers; gives what was asked and the value.
    fn asked(prompt: &VarsPrompt, answers: &[&str]) -> (Vec<String>, Result<Value>) {
        let mut questions = Vec::new();
        let mut answers = answers.iter();
        let value = ask_by(prompt, |question, secret| {
            questions.push(format!("{question}{}", if secret { "(hidden)" } else { "" }));
            answers.next().map(|answer| (*answer).to_owned()).ok_or_else(|| Error::input("there is no terminal"))
        });
        (questions, value)
    }

    #[test]
    fn the_default_counts_for_an_empty_answer_and_without_a_terminal() {
        let with_default = VarsPrompt { default: Some("9".into()), ..prompt() };
        for answers in [&[""][..], &[]] {
            let (questions, value) = asked(&with_default, answers);
            assert_eq!(questions, ["Which version [9]: "]);
            assert_eq!(value.expect("a value").to_text(), "9");
        }
        let (_, value) = asked(&prompt(), &[]);
        let error = value.expect_err("no terminal, no default");
        assert_eq!(error.to_string(), "play.yml:1:1: `version` cannot be asked for: there is no terminal");
    }

    #[test]
    fn a_secret_is_hidden_and_asked_again_until_it_is_confirmed() {
        let secret = VarsPrompt { private: true, confirm: true, default: Some("d".into()), ..prompt() };
        let (questions, value) = asked(&secret, &["a", "b", "c", "c"]);
        assert_eq!(questions, ["Which version: (hidden)", "confirm Which version: (hidden)"].repeat(2));
        assert_eq!(value.expect("a value").to_text(), "c");
    }
}
