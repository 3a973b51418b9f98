//! A growing BufferHash: generations of increasing size, each a BufferHash that is filled and then only read.
//!
//! Inserts go to the newest generation. When one of its super tables is full, the next generation follows, with as many
//! super tables as all before it together. So the table doubles each time, and nothing is evicted. If updates have
//! filled it, the next generation takes over the live entries instead ([`older`](super::older)), and those before it
//! are dropped. Entries are rewritten only for that. A lookup searches the buffers and filters of all generations,
//! newest first: they are in RAM. An update or a removal of an older entry goes to the newest generation and shadows
//! it.
//!
//! ```text
//!   insert, remove ------------------------------+        the next one is made in the background
//!                                                v        when the newest is 7/8 full
//!   generation 1   generation 2   generation 3         . . . . . . . . . . . . .
//!   +--------+     +--------+     +--------+--------+  .                       .
//!   |super t.|     |super t.|     |super t.|super t.|  .  4 super tables       .
//!   +--------+     +--------+     +--------+--------+  . . . . . . . . . . . . .
//!        ^              ^              ^
//!        3              2              1. get: the first generation that knows the key
//! ```
//!
//! Invariants
//! 1. A key's newest version is in the newest generation that knows it, as a value or as a tombstone. Generations older
//!    than one whose super table is whole are ignored for its keys.
//! 2. Only the newest generation takes updates, and takes over from others. An update holds the lock of updates for
//!    reading, and a generation is added while it is held for writing. So the newer one takes its first update after
//!    the older one has taken its last.
//! 3. Each generation is crash-safe by itself, and all share the volume's log, in the order of the updates. So a crash
//!    loses none, and no older version reappears.
//! 4. All generations have filters with the same bits. Their buffers get larger from one to the next, up to a limit, or
//!    smaller where one takes over from larger ones.
//!
//! With g generations, at most about log2 of the table's growth:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | 0 | as a BufferHash's | as a BufferHash's |
//! | lookup, found | 1 + at most the filters' rate, of all generations | 0 | |
//! | lookup, not found | the filters' rate, of all generations: g times that of one | 0 | |
//! | growth | 0 | two checkpoints | buffers and filters of the next generation |
//! | taking over | all of the older generations | their live entries | their filters, and a super table |

mod check;
pub(crate) mod config;
mod generations;
#[cfg(test)]
mod lives_tests;
mod model;
mod ram;
mod read;
pub(crate) mod sizes;
mod structure;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod versions;

pub use config::Config;
pub use generations::Generations;
use generations::generation_number;
pub(crate) use structure::GENERATION_ROW;

/// The name of this kind in the catalog.
pub const KIND: &str = "growing";

/// The name of the kind of its generations in the catalog.
pub const GENERATION_KIND: &str = "generation";

/// A hash table on flash from fixed-width keys to fixed-width values, which grows as it fills.
///
/// It holds everything until its RAM or the device is full.
///
/// ```
/// use std::sync::Arc;
/// use nandex::raw::bufferhash::growing::{Config, Growing};
/// use nandex::{Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Growing::create(&volume, "seen", Config::tiny())?;
/// for key in 0..10_000u64 {
///     table.insert(&key.to_le_bytes(), &[1; 8])?;
/// }
/// assert!(table.generations() > 1);
/// assert_eq!(table.get(&17u64.to_le_bytes())?.as_deref(), Some(&[1; 8][..]));
/// # Ok::<(), nandex::Error>(())
/// ```
pub type Growing = crate::grow::Growing<Generations>;

impl Growing {
    /// Returns the current number of generations.
    #[must_use]
    pub fn generations(&self) -> usize {
        self.owner.parts.cores().count()
    }
}
