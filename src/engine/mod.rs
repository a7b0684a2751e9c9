//! The heart: reads run ahead, changes wait their turn.
//!
//! `run` goes through plays and batches, `walk` takes one host through its tasks with a window of
//! invocations, `perform` makes an invocation out of a task, `conclude` its result.

pub mod alone;
pub mod barrier;
pub mod by_itself;
pub mod commit;
pub mod conclude;
pub mod cursor;
pub mod event;
pub mod exchange;
pub mod fact_cache;
pub mod grow;
pub mod handler;
pub mod include;
pub mod lane;
pub mod looping;
pub mod notify;
pub mod options;
pub mod perform;
pub mod play;
pub mod reach;
pub mod recorder;
pub mod result;
pub mod run;
pub mod send;
pub mod steer;
pub mod view;
pub mod walk;
pub mod window;
