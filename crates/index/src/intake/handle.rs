//! A table's handle: it saves what is buffered when it goes, and ends the background threads.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::thread::JoinHandle;

use nandex_store::Shutdown;

use super::{Intake, Room};
use crate::Result;

/// What every table's public type holds.
#[derive(Debug)]
pub(crate) struct Handle<R: Room> {
    pub(crate) inner: Arc<Intake<R>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) closed: bool,
}

impl<R: Room> Handle<R> {
    /// Saves what is buffered and ends the background threads; the second time it does nothing.
    pub(crate) fn shut_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let saved = self.inner.save_buffers();
        self.inner.work.stop();
        for thread in self.threads.drain(..) {
            // A panic over there is a bug that its own message has told.
            let _ = thread.join();
        }
        // A checkpoint that still held the table would keep the volume, and its file, open.
        let whole =
            saved.is_ok() && self.inner.ready.load(Acquire) && !self.inner.volume.poison().is_set();
        let left = if whole { Shutdown::Clean } else { Shutdown::NeedsReplay };
        self.inner.volume.deregister(self.inner.id, left);
        saved
    }
}

impl<R: Room> Drop for Handle<R> {
    fn drop(&mut self) {
        // Nobody is left to be told; what was acknowledged as durable is in the log.
        let _ = self.shut_down();
    }
}

/// Makes a type with a field `handle` a [`Table`](crate::Table), and closable.
macro_rules! delegate_table {
    ($table:ty) => {
        impl $table {
            /// Saves what is buffered and ends the background threads. Dropping does the same, and
            /// ignores failures.
            ///
            /// # Errors
            /// A failed write or sync. What was acknowledged as durable is in the log nevertheless.
            pub fn close(mut self) -> $crate::Result<()> {
                self.handle.shut_down()
            }

            /// Puts `value` under `key`, for tables of 8 + 8 bytes; numbers are stored little-endian.
            ///
            /// # Errors
            /// As [`Table::insert`]($crate::Table::insert).
            #[inline]
            pub fn insert_u64(&self, key: u64, value: u64) -> $crate::Result<()> {
                self.handle.inner.insert(&key.to_le_bytes(), &value.to_le_bytes())
            }

            /// The value under `key`, for tables of 8 + 8 bytes.
            ///
            /// # Errors
            /// As [`Table::get`]($crate::Table::get).
            #[inline]
            pub fn get_u64(&self, key: u64) -> $crate::Result<Option<u64>> {
                self.handle.inner.check_value(&[0; 8])?;
                let number = |value: $crate::Value| nandex_store::bytes::get_u64(&value, 0);
                Ok($crate::lookup::single(&*self.handle.inner, &key.to_le_bytes())?.map(number))
            }
        }

        impl $crate::Table for $table {
            fn key_bytes(&self) -> usize {
                self.handle.inner.layout.key_bytes()
            }

            fn value_bytes(&self) -> usize {
                self.handle.inner.layout.value_bytes()
            }

            #[inline]
            fn insert(&self, key: &[u8], value: &[u8]) -> $crate::Result<()> {
                self.handle.inner.insert(key, value)
            }

            fn remove(&self, key: &[u8]) -> $crate::Result<()> {
                self.handle.inner.remove(key)
            }

            #[inline]
            fn get(&self, key: &[u8]) -> $crate::Result<Option<$crate::Value>> {
                $crate::lookup::single(&*self.handle.inner, key)
            }

            fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> $crate::Result<()> {
                self.handle.inner.insert_many(pairs)
            }

            fn get_many(&self, keys: &[&[u8]]) -> $crate::Result<Vec<Option<$crate::Value>>> {
                $crate::lookup::batch(&*self.handle.inner, keys)
            }

            fn stream(&self) -> $crate::Result<Box<dyn $crate::LookupStream + '_>> {
                Ok($crate::lookup::stream(&*self.handle.inner))
            }

            fn sync(&self) -> $crate::Result<()> {
                self.handle.inner.sync()
            }

            fn flush(&self) -> $crate::Result<()> {
                self.handle.inner.flush_all()
            }

            fn stats(&self) -> $crate::TableStats {
                self.handle.inner.stats()
            }
        }
    };
}

pub(crate) use delegate_table;
