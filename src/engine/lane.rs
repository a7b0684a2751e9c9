//! The way to one host: its connection, opened when first needed, and the lock that keeps two walks apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as PlainMutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};

use crate::connect::shell::{Guard, Request, Response, Verb};
use crate::connect::{ConnectError, ConnectErrorKind, Connection, Counters, Identity, Target};
use crate::host::Change;

/// See the module's description.
pub struct Lane {
    pub target: Target,
    state: Arc<Mutex<State>>,
    /// How many hosts are talked to at once.
    forks: Arc<Semaphore>,
    /// Counts changes that others made here, so that the host's own walk forgets what it read.
    foreign: AtomicU64,
    /// The changes that a run in check mode has recorded for this host, by whichever way, in their order.
    recorded: PlainMutex<Vec<Recorded>>,
}

/// A change that check mode recorded, and as whom it would be made.
pub type Recorded = (Arc<Identity>, Arc<Change>);

/// The connection, for whoever holds the lock.
#[derive(Default)]
pub struct State {
    connection: Option<Connection>,
    /// Why the host was given up.
    lost: Option<ConnectError>,
    /// What connections that are closed now have cost.
    past: Counters,
}

impl Lane {
    pub fn new(target: Target, forks: Arc<Semaphore>) -> Arc<Lane> {
        Arc::new(Lane {
            target,
            state: Arc::default(),
            forks,
            foreign: AtomicU64::new(0),
            recorded: PlainMutex::default(),
        })
    }

    /// Sends one batch and waits for its answers.
    pub async fn run(&self, identity: &Identity, requests: &[Request]) -> Result<Vec<Response>, ConnectError> {
        let mut state = self.state.lock().await;
        self.run_locked(&mut state, identity, requests).await
    }

    /// Takes the lane for several batches in a row.
    pub async fn lock(&self) -> OwnedMutexGuard<State> {
        Arc::clone(&self.state).lock_owned().await
    }

    /// Sends one batch by whoever holds the lock.
    pub async fn run_locked(
        &self,
        state: &mut State,
        identity: &Identity,
        requests: &[Request],
    ) -> Result<Vec<Response>, ConnectError> {
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        let _permit = self.forks.acquire().await;
        let connection = match state.connection.take() {
            Some(connection) => connection,
            None => match Connection::open(&self.target).await {
                Ok(connection) => connection,
                Err(error) => {
                    state.lost = Some(error.clone());
                    return Err(error);
                }
            },
        };
        let connection = state.connection.insert(connection);
        let answers = connection.run(identity, requests).await;
        if let Err(error) = &answers
            && error.kind == ConnectErrorKind::Unreachable
        {
            // what was answered belongs to this batch alone
            state.lost = Some(ConnectError::new(error.kind, error.message.clone()));
            drop_connection(state);
        }
        answers
    }

    /// Runs shell code on a new connection, by whoever holds the lock. What fails, or takes longer than `limit`, leaves
    /// the host to be tried again.
    pub async fn renew_locked(
        &self,
        state: &mut State,
        identity: &Identity,
        text: String,
        limit: Duration,
    ) -> Result<Response, ConnectError> {
        state.lost = None;
        drop_connection(state);
        let verb = Verb::Script { text, stdin: None };
        let request = Request { verb, guard: Guard::Always, expect: None, writes: None };
        let answered = tokio::time::timeout(limit, self.run_locked(state, identity, &[request])).await;
        let error = match answered {
            Ok(Ok(responses)) => return Ok(responses.into_iter().next().unwrap_or_default()),
            Ok(Err(error)) => error,
            Err(_) => ConnectError {
                kind: ConnectErrorKind::Unreachable,
                message: format!("no answer within {} seconds", limit.as_secs_f32()),
                answers: Vec::new(),
            },
        };
        state.lost = None;
        drop_connection(state);
        Err(error)
    }

    /// Closes the connection; the next batch opens a new one, also to a host that was given up.
    pub async fn reset(&self) {
        let mut state = self.state.lock().await;
        state.lost = None;
        drop_connection(&mut state);
    }

    /// Closes the connection for good.
    pub async fn close(&self) {
        let connection = {
            let mut state = self.state.lock().await;
            if let Some(connection) = &state.connection {
                state.past = sum(state.past, connection.counters());
            }
            state.connection.take()
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    pub async fn counters(&self) -> Counters {
        let state = self.state.lock().await;
        state.connection.as_ref().map_or(state.past, |connection| sum(state.past, connection.counters()))
    }

    /// Notes that somebody else than the host's own walk changed it.
    pub fn note_foreign_change(&self) {
        self.foreign.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes a change that the run, which is in check mode, recorded; how many there were before.
    pub fn note_recorded(&self, identity: &Arc<Identity>, change: &Arc<Change>) -> usize {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.push((Arc::clone(identity), Arc::clone(change)));
        recorded.len() - 1
    }

    /// The recorded changes behind the first `known`.
    pub fn recorded_behind(&self, known: usize) -> Vec<Recorded> {
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.get(known..).unwrap_or_default().to_vec()
    }

    pub fn foreign_changes(&self) -> u64 {
        self.foreign.load(Ordering::SeqCst)
    }
}

fn drop_connection(state: &mut State) {
    if let Some(connection) = state.connection.take() {
        state.past = sum(state.past, connection.counters());
    }
}

fn sum(left: Counters, right: Counters) -> Counters {
    Counters {
        round_trips: left.round_trips + right.round_trips,
        bytes_sent: left.bytes_sent + right.bytes_sent,
        bytes_received: left.bytes_received + right.bytes_received,
    }
}
