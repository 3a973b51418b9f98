//! A partition: the buffer that takes updates, the ones being written, and what lies below.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex_store::Lsn;
use nandex_store::buffer::{Buffer, Found};
use nandex_store::hash::KeyHash;

use super::Room;
use super::format::ImageRef;
use crate::api::Value;

/// A partition; BufferHash calls it a super table.
#[derive(Debug)]
pub(crate) struct Partition<R: Room> {
    state: Mutex<PartitionState<R>>,
    /// What the room reads without the lock.
    pub(crate) beside: R::Beside,
    /// Held by whoever changes what the partition has on flash; taken before `state`.
    turn: Mutex<()>,
}

/// What changes in a partition.
#[derive(Debug)]
pub(crate) struct PartitionState<R: Room> {
    /// Takes updates.
    pub(crate) active: Buffer,
    /// The log's place before the first entry in it that is nowhere else.
    pub(crate) since: Option<Lsn>,
    /// Counts the buffers this partition has had: names the active one.
    pub(crate) number: u64,
    /// Puts into the active buffer: tells whether it changed.
    pub(crate) puts: u64,
    /// How many of them its image holds.
    pub(crate) saved_puts: u64,
    /// Those of them that were the user's and not put back by the room.
    pub(crate) user_puts: u64,
    /// Removals that were put into the active buffer although it was full.
    pub(crate) forced: u64,
    /// The user's inserts and removes since the table was opened.
    pub(crate) inserts: u64,
    /// Is a background thread at work on the frozen buffers?
    pub(crate) flushing: bool,
    /// The image that holds part of the active buffer.
    pub(crate) image: Option<ImageRef>,
    /// Full buffers, oldest first, until they are on flash.
    pub(crate) frozen: VecDeque<Frozen<R>>,
    /// What lies below.
    pub(crate) level: R::Level,
}

/// A full buffer that is being written.
#[derive(Debug)]
pub(crate) struct Frozen<R: Room> {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) since: Option<Lsn>,
    pub(crate) image: Option<ImageRef>,
    pub(crate) user_puts: u64,
    /// What the room took when the buffer was frozen.
    pub(crate) held: R::Held,
}

impl<R: Room> Clone for Frozen<R> {
    fn clone(&self) -> Self {
        let Self { buffer, since, image, user_puts, held } = self;
        Self {
            buffer: Arc::clone(buffer),
            since: *since,
            image: *image,
            user_puts: *user_puts,
            held: held.clone(),
        }
    }
}

impl<R: Room> Partition<R> {
    pub(crate) fn new(active: Buffer, level: R::Level, beside: R::Beside) -> Self {
        let state = PartitionState {
            active,
            since: None,
            number: 0,
            puts: 0,
            saved_puts: 0,
            user_puts: 0,
            forced: 0,
            inserts: 0,
            flushing: false,
            image: None,
            frozen: VecDeque::new(),
            level,
        };
        Self { state: Mutex::new(state), beside, turn: Mutex::default() }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, PartitionState<R>> {
        self.state.lock().expect("no holder of a partition's lock panics")
    }

    pub(crate) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().expect("no holder of a partition's turn panics")
    }
}

impl<R: Room> PartitionState<R> {
    /// What the buffers know of a key.
    #[inline]
    pub(crate) fn buffered(&self, hash: KeyHash, key: &[u8]) -> Option<Found<'_>> {
        let frozen = || self.frozen.iter().rev().find_map(|frozen| frozen.buffer.get(hash, key));
        self.active.get(hash, key).or_else(frozen)
    }

    /// What the buffers answer to a lookup, where they can.
    #[inline]
    pub(crate) fn answer(&self, hash: KeyHash, key: &[u8]) -> Option<Option<Value>> {
        Some(match self.buffered(hash, key)? {
            Found::Live(value) => Some(Value::new(value)),
            Found::Tombstone => None,
        })
    }

    /// Is a key in a buffer that is being written?
    pub(crate) fn in_frozen(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.frozen.iter().any(|frozen| frozen.buffer.get(hash, key).is_some())
    }

    /// The oldest place of the log that this partition still needs.
    pub(crate) fn tail(&self) -> Option<Lsn> {
        let frozen = self.frozen.iter().filter_map(|frozen| frozen.since);
        frozen.chain(self.since).min()
    }

    /// The image that recovery has to load before it replays the log.
    pub(crate) fn needed_image(&self) -> Option<ImageRef> {
        self.frozen.iter().find_map(|frozen| frozen.image).or(self.image)
    }

    /// Notes that a place was written anew after its buffer was frozen: who referred to the older image
    /// there now has the newer one of the same buffer, and the log's entries after the older one.
    pub(crate) fn replace_image(&mut self, image: ImageRef) {
        let frozen = self.frozen.iter_mut().map(|frozen| &mut frozen.image);
        let stale = frozen.chain([&mut self.image]).flatten();
        stale.filter(|old| old.slot == image.slot).for_each(|old| *old = image);
    }

    /// Entries in its buffers.
    pub(crate) fn entries_buffered(&self) -> u64 {
        let frozen = self.frozen.iter().map(|frozen| frozen.buffer.len() as u64).sum::<u64>();
        frozen + self.active.len() as u64
    }

    /// Puts a fresh buffer in the place of the active one.
    pub(crate) fn freeze(&mut self, fresh: Buffer, held: R::Held) {
        let buffer = Arc::new(std::mem::replace(&mut self.active, fresh));
        self.frozen.push_back(Frozen {
            buffer,
            since: self.since.take(),
            image: self.image.take(),
            user_puts: std::mem::take(&mut self.user_puts),
            held,
        });
        self.number += 1;
        self.puts = 0;
        self.forced = 0;
        self.saved_puts = 0;
    }
}
