//! A structure's handle: it saves what is buffered when it is dropped, and ends the background threads.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::thread::JoinHandle;

use nandex_store::Shutdown;

use super::{Checkpoints, Core};
use crate::Result;

/// What every structure's public type holds.
#[derive(Debug)]
pub(crate) struct Handle<L: Checkpoints> {
    pub(crate) core: Arc<Core<L>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) closed: bool,
}

impl<L: Checkpoints> Handle<L> {
    /// Saves what is buffered and ends the background threads; the second time it does nothing.
    pub(crate) fn shut_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let mut saved = self.core.save_buffers();
        self.core.work.stop();
        for thread in self.threads.drain(..) {
            // A panic of the thread is a bug, and has printed its own message.
            let _ = thread.join();
        }
        if saved.is_ok() && self.core.ready.load(Acquire) {
            saved = self.save_the_rest();
        }
        // A checkpoint that still holds the table keeps the volume, and its file, open.
        let core = &self.core;
        let is_whole = || {
            saved.is_ok()
                && core.ready.load(Acquire)
                && !core.volume.poison().is_set()
                && core.is_saved()
        };
        let left = || if is_whole() { Shutdown::Clean } else { Shutdown::NeedsReplay };
        core.volume.deregister(core.id, left);
        saved
    }

    /// Saves what the threads have moved after the last checkpoint, and what helps the next opening.
    fn save_the_rest(&self) -> Result<()> {
        let core = &self.core;
        L::closing(core)?;
        if core.is_saved() { Ok(()) } else { Ok(core.volume.checkpoint()?) }
    }
}

impl<L: Checkpoints> Drop for Handle<L> {
    fn drop(&mut self) {
        // Nobody can receive this error; what was acknowledged as durable is in the log.
        let _ = self.shut_down();
    }
}

/// Makes a type with a field `handle` a [`Table`](crate::Table), and closable.
macro_rules! delegate_table {
    ([$($generics:tt)*] $table:ty) => {
        impl<$($generics)*> $table {
            /// Saves what is buffered and ends the background threads. Dropping does the same, and
            /// ignores failures.
            ///
            /// # Errors
            /// A failed write or sync. What was acknowledged as durable is in the log nevertheless.
            pub fn close(mut self) -> $crate::Result<()> {
                self.handle.shut_down()
            }

            #[inline]
            fn cached(&self) -> $crate::lookup::Cached<'_, impl $crate::lookup::TableLookup> {
                $crate::lookup::Cached::new(&*self.handle.core)
            }

            /// Puts `value` under `key`, for tables of 8 + 8 bytes; numbers are stored little-endian.
            ///
            /// # Errors
            /// As [`Table::insert`]($crate::Table::insert).
            #[inline]
            pub fn insert_u64(&self, key: u64, value: u64) -> $crate::Result<()> {
                $crate::Table::insert(self, &key.to_le_bytes(), &value.to_le_bytes())
            }

            /// The value under `key`, for tables of 8 + 8 bytes.
            ///
            /// # Errors
            /// As [`Table::get`]($crate::Table::get).
            #[inline]
            pub fn get_u64(&self, key: u64) -> $crate::Result<Option<u64>> {
                self.handle.core.check_value(&[0; 8])?;
                let number = |value: $crate::Value| nandex_store::bytes::get_u64(&value, 0);
                Ok($crate::lookup::single(&self.cached(), &key.to_le_bytes())?.map(number))
            }
        }

        impl<$($generics)*> $crate::Table for $table {
            fn key_bytes(&self) -> usize {
                self.handle.core.entry_layout().key_bytes()
            }

            fn value_bytes(&self) -> usize {
                self.handle.core.entry_layout().value_bytes()
            }

            #[inline]
            fn insert(&self, key: &[u8], value: &[u8]) -> $crate::Result<()> {
                self.handle.core.insert(key, value).map_err(|error| self.handle.core.counted(error))
            }

            fn remove(&self, key: &[u8]) -> $crate::Result<()> {
                self.handle.core.remove(key).map_err(|error| self.handle.core.counted(error))
            }

            #[inline]
            fn get(&self, key: &[u8]) -> $crate::Result<Option<$crate::Value>> {
                $crate::lookup::single(&self.cached(), key)
            }

            fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> $crate::Result<()> {
                self.handle.core.insert_many(pairs).map_err(|error| self.handle.core.counted(error))
            }

            fn get_or_insert_many(
                &self,
                pairs: &[(&[u8], &[u8])],
            ) -> $crate::Result<Vec<Option<$crate::Value>>> {
                let found = self.handle.core.get_or_insert_many(pairs);
                found.map_err(|error| self.handle.core.counted(error))
            }

            fn get_many(&self, keys: &[&[u8]]) -> $crate::Result<Vec<Option<$crate::Value>>> {
                $crate::lookup::batch(&self.cached(), keys)
            }

            fn stream(&self) -> $crate::Result<Box<dyn $crate::LookupStream + '_>> {
                Ok($crate::lookup::stream(&*self.handle.core))
            }

            fn sync(&self) -> $crate::Result<()> {
                self.handle.core.sync()
            }

            fn flush(&self) -> $crate::Result<()> {
                self.handle.core.flush_all()
            }

            fn stats(&self) -> $crate::TableStats {
                self.handle.core.stats()
            }
        }
    };
    ($table:ty) => {
        $crate::write::delegate_table!([] $table);
    };
}

pub(crate) use delegate_table;
