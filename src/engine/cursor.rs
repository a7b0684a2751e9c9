//! A host's place in the lists of its play, and the way on: through blocks, into rescue and always.
//!
//! A cursor is a small stack that is copied freely: one is at the last finished task, another runs ahead
//! with the window, and every invocation keeps the one from which to go on should it fail.

use std::sync::Arc;

use crate::playbook::{Block, Item, Role, Task};

/// See the module's description.
#[derive(Debug, Clone, Default)]
pub struct Cursor {
    frames: Vec<Frame>,
}

#[derive(Debug, Clone)]
struct Frame {
    items: Arc<Vec<Item>>,
    next: usize,
    phase: Phase,
    block: Option<Arc<Block>>,
    /// An always that runs after a failure nobody rescued: the failure goes on behind it.
    failing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A play's section, an included file, the handlers.
    List,
    Block,
    Rescue,
    Always,
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    Task(Arc<Task>),
    FlushHandlers,
    /// The body of a role, to be entered or left out.
    Role(Arc<Block>),
    /// The body of a role came to its end.
    RoleEnded(Arc<Role>),
    /// A rescue came to its end: its failure is forgotten.
    Rescued,
    /// The always of a block that failed came to its end: fail on from here.
    StillFailing,
    /// The play is done.
    End,
}

/// Where a failure leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// A rescue begins.
    Rescue,
    /// An always begins, the failure goes on behind it.
    Always,
    /// Nothing catches it: the host is done.
    Host,
}

impl Cursor {
    /// A cursor before the first of these sections.
    pub fn new(sections: Vec<Arc<Vec<Item>>>) -> Cursor {
        let mut items = Vec::new();
        for section in sections {
            items.extend(section.iter().cloned());
        }
        let mut cursor = Cursor::default();
        cursor.enter(Arc::new(items));
        cursor
    }

    /// Goes into a list (an included file, the handlers) before going on.
    pub fn enter(&mut self, items: Arc<Vec<Item>>) {
        self.push(items, Phase::List, None, false);
    }

    /// Goes into a block before going on.
    pub fn enter_block(&mut self, block: Arc<Block>) {
        let items = Arc::clone(&block.items);
        self.push(items, Phase::Block, Some(block), false);
    }

    fn push(&mut self, items: Arc<Vec<Item>>, phase: Phase, block: Option<Arc<Block>>, failing: bool) {
        self.frames.push(Frame { items, next: 0, phase, block, failing });
    }

    /// Steps on to what comes next, if nothing fails.
    pub fn advance(&mut self) -> Next {
        loop {
            let Some(frame) = self.frames.last_mut() else { return Next::End };
            if let Some(item) = frame.items.get(frame.next) {
                let item = item.clone();
                frame.next += 1;
                match item {
                    Item::Task(task) => return Next::Task(task),
                    Item::FlushHandlers => return Next::FlushHandlers,
                    Item::Block(block) if block.role.is_some() => return Next::Role(block),
                    Item::Block(block) => self.enter_block(block),
                }
                continue;
            }
            let Some(frame) = self.frames.pop() else { return Next::End };
            match frame.phase {
                Phase::List => {}
                Phase::Block => {
                    let role = frame.block.as_ref().and_then(|block| block.role.clone());
                    self.push_always(frame.block, false);
                    if let Some(role) = role {
                        return Next::RoleEnded(role);
                    }
                }
                Phase::Rescue => {
                    self.push_always(frame.block, false);
                    return Next::Rescued;
                }
                Phase::Always if frame.failing => return Next::StillFailing,
                Phase::Always => {}
            }
        }
    }

    /// Leaves for where a failure of the task that was last returned leads.
    pub fn fail(&mut self) -> Failed {
        while let Some(frame) = self.frames.pop() {
            let Some(block) = frame.block else { continue };
            match frame.phase {
                Phase::Block if !block.rescue.is_empty() => {
                    let rescue = Arc::clone(&block.rescue);
                    self.push(rescue, Phase::Rescue, Some(block), false);
                    return Failed::Rescue;
                }
                Phase::Block | Phase::Rescue if !block.always.is_empty() => {
                    self.push_always(Some(block), true);
                    return Failed::Always;
                }
                _ => {}
            }
        }
        Failed::Host
    }

    fn push_always(&mut self, block: Option<Arc<Block>>, failing: bool) {
        if let Some(block) = block
            && !block.always.is_empty()
        {
            let always = Arc::clone(&block.always);
            self.push(always, Phase::Always, Some(block), failing);
        }
    }

    /// Leaves everything: the play ends here for this host.
    pub fn end(&mut self) {
        self.frames.clear();
    }

    /// Leaves the body of the innermost role (`meta: end_role`), which it returns.
    pub fn end_role(&mut self) -> Option<Arc<Role>> {
        while let Some(frame) = self.frames.pop() {
            if let Some(role) = frame.block.and_then(|block| block.role.clone()) {
                return Some(role);
            }
        }
        None
    }

    /// Forgets the failures that would go on behind an always (`meta: clear_host_errors`).
    pub fn forgive(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.failing = false);
    }

    /// The way down to the task that was last returned: comparable between hosts, later is greater.
    pub fn position(&self) -> Vec<u32> {
        let phase = |frame: &Frame| match frame.phase {
            Phase::List | Phase::Block => 0,
            Phase::Rescue => 1,
            Phase::Always => 2,
        };
        // a frame's own index follows the phase it is in, so a rescue is behind all of its block
        self.frames.iter().flat_map(|frame| [phase(frame), frame.next as u32]).collect()
    }

    /// True if a failure here is rescued sooner or later: by a block around, maybe behind the always of an inner one.
    pub fn is_rescuable(&self) -> bool {
        let has_rescue = |block: &Arc<Block>| !block.rescue.is_empty();
        self.frames.iter().any(|frame| frame.phase == Phase::Block && frame.block.as_ref().is_some_and(has_rescue))
    }
}
