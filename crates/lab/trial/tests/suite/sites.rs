//! A device that classifies its operations: by the part of the run, the kind of operation, and the content of
//! the pages. Pages tell that themselves, in their headers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use nandex::raw::device::{Call, Observer, OpKind, PAGE_BYTES, PageId, Result};
use nandex::raw::store::log::format::BLOCK_MAGIC;
use nandex::raw::store::page::PAGE_MAGIC;
use nandex_sim::FaultOn;

/// The class of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Site {
    /// The part of the run.
    pub part: &'static str,
    /// The content of the operation's pages.
    pub about: &'static str,
}

#[derive(Default, Debug)]
struct State {
    part: &'static str,
    /// The content of each page that was ever written.
    pages: HashMap<u64, &'static str>,
    /// The content that was written last since the last sync.
    unsynced: Option<&'static str>,
    seen: [Vec<Site>; 4],
}

/// A watcher that records the class of all operations of a device.
#[derive(Default, Debug)]
pub struct Sites(Mutex<State>);

impl Sites {
    /// Names the part of the run that begins.
    pub fn begin(&self, part: &'static str) {
        self.lock().part = part;
    }

    /// Returns the classes of all operations of a kind, in order.
    pub fn sites(&self, on: FaultOn) -> Vec<Site> {
        self.lock().seen[on as usize].clone()
    }

    /// Returns the class of the operation of a kind and number, counted from 1.
    pub fn site(&self, on: FaultOn, number: u64) -> Option<Site> {
        self.lock().seen[on as usize].get(usize::try_from(number - 1).unwrap()).copied()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn note(&mut self, on: FaultOn, about: &'static str) {
        let site = Site { part: self.part, about };
        self.seen[on as usize].push(site);
    }

    fn start(&mut self, kind: OpKind, first: PageId, pages: u64, bytes: &[u8]) {
        let about = match kind {
            OpKind::Read => self.pages.get(&first.0).copied().unwrap_or("blank"),
            OpKind::Write => what_is(bytes),
        };
        let about = match about {
            "data" if pages > 1 => "whole data",
            "slice" if pages > 1 => "whole slice",
            "run" if pages > 1 => "I/O chunk of a run",
            "records" if pages > 1 => "group of records",
            about => about,
        };
        self.note(kind.into(), about);
        for (number, page) in (first.0..).zip(bytes.chunks(PAGE_BYTES)) {
            // A block of the log, and of values, has one header for all its pages.
            let is_block = ["log", "values"].contains(&about);
            self.pages.insert(number, if is_block { about } else { what_is(page) });
            self.unsynced = Some(about);
        }
    }
}

/// Returns the content of a page according to its header.
fn what_is(page: &[u8]) -> &'static str {
    kind_of(page).expect("only pages of a known sort are written")
}

/// Returns the content of a page; nothing for a page without a header.
pub fn kind_of(page: &[u8]) -> Option<&'static str> {
    let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap());
    Some(match (word(4), word(8) & 0xffff) {
        (BLOCK_MAGIC, _) => "log",
        (PAGE_MAGIC, 1) => "superblock",
        (PAGE_MAGIC, 2) => "checkpoint",
        (PAGE_MAGIC, 3) => "data",
        (PAGE_MAGIC, 4) => "filter",
        (PAGE_MAGIC, 5) => "image",
        (PAGE_MAGIC, 6) => "slice",
        (PAGE_MAGIC, 7) => "values",
        (PAGE_MAGIC, 8) => "run",
        (PAGE_MAGIC, 9) => "counts",
        (PAGE_MAGIC, 10) => "records",
        _ => return None,
    })
}

impl Observer for Sites {
    fn before(&self, call: Call<'_>) -> Result<()> {
        let mut state = self.lock();
        match call {
            Call::Start { kind, page, pages, bytes } => state.start(kind, page, pages, bytes),
            Call::Grow { from: 0, .. } => state.note(FaultOn::Grow, "empty"),
            Call::Grow { .. } => state.note(FaultOn::Grow, "longer"),
            Call::Sync => {
                let about = state.unsynced.take().unwrap_or("blank");
                state.note(FaultOn::Sync, about);
            }
            Call::Discard { .. } => panic!("nothing in store and index discards yet: {call:?}"),
            Call::Wait { .. } => {}
        }
        Ok(())
    }
}
