//! Questions to whoever sits before the run: `--step`, and the task debugger.

use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::vars::Stamp;

use super::event::Event;
use super::play::Run;

/// A question that goes the way of events, so that it is asked when all before it has been shown.
#[derive(Clone)]
pub struct Question {
    /// Shown before the answer is typed, on the same line.
    pub text: String,
    answer: Sender<Result<String>>,
}

impl Question {
    /// Answers it; without an answer the run cannot go on.
    pub fn answer(&self, answer: Result<String>) {
        // whoever asked may have gone
        let _ = self.answer.send(answer);
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Question").field(&self.text).finish()
    }
}

impl Run {
    /// Asks, and waits for the answer.
    pub fn ask_now(&self, text: String) -> Result<String> {
        let (answer, answered) = channel();
        self.tell(Event::Question(Question { text, answer }));
        let nobody = || Err(Error::usage("there is nobody to answer the questions of this run"));
        tokio::task::block_in_place(|| answered.recv()).unwrap_or_else(|_| nobody())
    }
}

/// The answers to `--step`.
#[derive(Default)]
pub struct Steps {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_on: bool,
    decided: HashMap<Stamp, bool>,
}

impl Steps {
    pub fn new(is_on: bool) -> Steps {
        Steps { state: Mutex::new(State { is_on, decided: HashMap::new() }) }
    }

    pub fn is_on(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_on
    }

    /// Whether a task is to run. The first host that comes to it asks for all; with `host`, each for itself.
    pub fn takes(&self, run: &Run, task: &str, host: Option<&Arc<str>>, at: &Stamp) -> Result<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_on {
            return Ok(true);
        }
        if let Some(decided) = state.decided.get(at).filter(|_| host.is_none()) {
            return Ok(*decided);
        }
        let whose = host.map(|host| format!("on {host} ")).unwrap_or_default();
        // an answer that fails is asked for once
        state.decided.insert(at.clone(), false);
        let answer = run.ask_now(format!("Perform task: TASK: {task} {whose}(N)o/(y)es/(c)ontinue: "))?;
        let takes = match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => true,
            "c" | "continue" => {
                state.is_on = false;
                true
            }
            _ => false,
        };
        state.decided.insert(at.clone(), takes);
        Ok(takes)
    }
}
