//! The environment of LMDB that tables and counters share.

use std::path::Path;

use anyhow::Result;
use heed::byteorder::NativeEndian;
use heed::types::U64;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, IntegerComparator, WithoutTls};
use nandex_bench::subject::{Durability, Spec};

/// Keys are native integers, with LMDB's own comparison.
pub type Table<V> = Database<U64<NativeEndian>, V, IntegerComparator>;

/// Opens the environment in `dir` and its one table, or creates them.
pub fn open<V: 'static>(dir: &Path, spec: &Spec) -> Result<(Env<WithoutTls>, Table<V>)> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    // The map is address space, not memory: half-full pages and copies need space.
    let entries_bytes = spec.entries.saturating_mul(8 * spec.entry_bytes());
    let map_bytes = entries_bytes.saturating_add(1 << 30).next_multiple_of(1 << 20);
    options.map_size(usize::try_from(map_bytes)?).max_readers(u32::try_from(spec.threads)? + 16);
    let durable = spec.durability == Durability::Always;
    let fast = if durable { EnvFlags::empty() } else { EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC };
    // SAFETY: NO_SYNC and WRITE_MAP drop durability and protection from stray writes, which a
    // benchmark may; a damaged file is loaded again.
    unsafe { options.flags(fast | EnvFlags::NO_READ_AHEAD | EnvFlags::NO_MEM_INIT) };
    // SAFETY: the directory belongs to this benchmark; no other process changes or truncates the
    // file while it is mapped, and this process opens it once.
    let env = unsafe { options.open(dir) }?;
    let mut write = env.write_txn()?;
    let table = env
        .database_options()
        .types::<U64<NativeEndian>, V>()
        .key_comparator::<IntegerComparator>()
        .create(&mut write)?;
    write.commit()?;
    Ok((env, table))
}
