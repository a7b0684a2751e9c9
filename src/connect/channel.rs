//! A running program on the other side: bytes to its stdin, events from it. What carries it is not known here.

use tokio::sync::mpsc;

/// What a program on the other side does.
#[derive(Debug)]
pub(super) enum Event {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// It has ended, or the connection has; nothing comes after this.
    Closed(Closed),
}

/// How it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Closed {
    /// The exit code; `None`: the connection broke, or a signal.
    pub(super) code: Option<u32>,
    /// What is known beyond that.
    pub(super) reason: Option<String>,
}

/// The near end. Dropping it closes the program's stdin. Whatever carries it drains the program's output into
/// `events` without waiting, so that one slow reader never stalls a connection that many channels share.
#[derive(Debug)]
pub(super) struct Channel {
    input: mpsc::UnboundedSender<Vec<u8>>,
    events: mpsc::UnboundedReceiver<Event>,
}

/// The far end: what the carrier reads from and reports to.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) input: mpsc::UnboundedReceiver<Vec<u8>>,
    pub(super) events: mpsc::UnboundedSender<Event>,
}

impl Channel {
    pub(super) fn new() -> (Channel, Carrier) {
        let (input, far_input) = mpsc::unbounded_channel();
        let (far_events, events) = mpsc::unbounded_channel();
        (Channel { input, events }, Carrier { input: far_input, events: far_events })
    }

    /// Sends bytes to stdin. If the program is gone, its `Closed` event says so.
    pub(super) fn send(&self, bytes: Vec<u8>) {
        let _ = self.input.send(bytes);
    }

    pub(super) async fn event(&mut self) -> Event {
        self.events.recv().await.unwrap_or_else(|| Event::Closed(Closed::default()))
    }
}
