//! Tables that evict, and reinsert entries that were used, while they absorb.

use super::*;
use crate::OpenOptions;
use crate::bufferhash::Policy;

const POLICIES: [Policy; 5] =
    [Policy::Fifo, Policy::Lru, Policy::Update, Policy::Threshold(0), Policy::Top(500)];

/// The values of a key in the absorbing table and in the other.
const OLD: u64 = 1;
const NEW: u64 = 2;

/// Returns a table of this policy with threads, or with all work on the calling thread.
fn evicting(policy: Policy, threads: Threads) -> BufferHash {
    let options = VolumeOptions { threads, ..options(7) };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let flush_threads = if threads == Threads::Inline { 0 } else { 2 };
    let runtime = OpenOptions { flush_threads: Some(flush_threads), ..Default::default() };
    let config = bufferhash::Config { policy, ..bufferhash::Config::tiny() };
    BufferHash::create_with(&volume, "t", config, runtime).unwrap()
}

/// Returns another table with a new value for each key.
fn newer(keys: Range<u64>) -> AnyTable {
    let other = table("slicehash", 7);
    fill(&other, keys.map(|key| (key, Some(NEW))));
    other
}

/// Keys of a full ring are absorbed again: entries that an eviction retains may be put into buffers while new
/// incarnations are being written, and must not shadow these.
#[test]
fn what_an_eviction_keeps_hides_nothing_that_is_absorbed() {
    for policy in POLICIES {
        for (round, keys) in [2000, 4000, 6000, 9000].into_iter().enumerate() {
            let mut table = evicting(policy, Threads::Inline);
            (0..keys).for_each(|key| table.insert_u64(key, OLD).unwrap());
            (0..keys).step_by(5).for_each(|key| table.remove(&key.to_le_bytes()).unwrap());
            let other = newer(round as u64 * 300..keys);
            let options = AbsorbOptions { prefer: Prefer::Last, ..AbsorbOptions::default() };
            table.absorb(&[other.versions().unwrap()], &options).unwrap();
            let mut kept = 0;
            for key in round as u64 * 300..keys {
                let found = table.get_u64(key).unwrap();
                assert!(found.is_none_or(|value| value == NEW), "key {key}: {found:?}, {policy:?}");
                kept += u64::from(found.is_some());
            }
            assert!(kept > 1500, "{kept} of {keys}, {policy:?}");
        }
    }
}

/// Lookups had found older entries on flash, and asked the background to reinsert them into buffers. That happened
/// after the absorbed entries were split into those that buffers shadow and the others, and before these were on flash.
#[test]
fn what_lookups_have_used_hides_nothing_that_is_absorbed() {
    for round in 0..20 {
        let mut table = evicting(Policy::Lru, Threads::Background);
        let keys = 0..5000;
        keys.clone().for_each(|key| table.insert_u64(key, OLD).unwrap());
        let other = newer(keys.clone());
        let used = keys.clone().filter(|key| table.get_u64(*key).unwrap().is_some()).count();
        assert!(used > 2500, "{used}");
        let options = AbsorbOptions { prefer: Prefer::Last, ..AbsorbOptions::default() };
        table.absorb(&[other.versions().unwrap()], &options).unwrap();
        for key in keys {
            let found = table.get_u64(key).unwrap();
            assert!(found.is_none_or(|value| value == NEW), "key {key}: {found:?}, round {round}");
        }
    }
}
