//! A table that takes no more inserts, as an older generation of a growing one: its buffers go to flash, and a few
//! pages of RAM hold the carry-over of a flush.

use std::time::Duration;

use super::Inner;
use super::table::Job;
use crate::write::{Layout, copy_entries, pool};
use crate::{Error, Result};

/// The time between two checks of a flush that another thread does.
const FLUSH_WAIT: Duration = Duration::from_millis(2);

impl Inner {
    /// Frees the buffer of a super table: freezes it, so that it is flushed, or moves its few entries into a small one.
    /// A super table without incarnations keeps its buffer.
    pub(super) fn retire_buffer(&self, index: usize) -> Result<()> {
        let mut state = self.partitions[index].write();
        if !state.frozen.is_empty() {
            drop(state);
            self.volume.poison().check()?;
            self.pool.wait(FLUSH_WAIT);
            self.work.push(pool::Job::Own(Job::Retire(index)));
            return Ok(());
        }
        if state.active_mut().len() > self.layout.config.carry_over_usual() {
            return match self.try_freeze(index, &mut state, 0) {
                Err(Error::Full { .. }) => Ok(()),
                frozen => frozen.map(drop),
            };
        }
        let mut small = self.layout.new_retired_buffer();
        copy_entries(state.active_mut(), &mut small, self.hasher);
        *state.active_mut() = small;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::OpenOptions;
    use std::sync::Arc;

    use nandex_device::MemoryDevice;
    use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

    use crate::bufferhash::{BufferHash, Config, Policy};
    use crate::{Error, Table};

    fn create(device: &MemoryDevice, flush_threads: usize) -> BufferHash {
        let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
        let config = Config { policy: Policy::Reject, segments: 60, ..Config::tiny() };
        let own = OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() };
        BufferHash::create_with(&volume, "t", config, own).unwrap()
    }

    fn open(device: MemoryDevice, flush_threads: usize) -> BufferHash {
        let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
        let own = OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() };
        BufferHash::open_with(&volume, "t", own).unwrap()
    }

    /// Retires it; returns the pages of its buffers, and the incarnations of its super tables.
    fn retire(table: &BufferHash) -> (Vec<usize>, Vec<usize>) {
        let core = &table.core;
        core.retire();
        core.work.wait_quiet();
        assert_eq!(core.pool.ram_bytes(), 0);
        let states = core.partitions.iter().map(|it| it.write());
        states.map(|mut it| (it.active_mut().page_count(), it.level.window.len())).unzip()
    }

    /// Every seventh key was removed.
    fn agrees(table: &BufferHash, keys: u64) {
        for key in 0..keys {
            let expected = (key % 7 != 0).then_some(key * 3);
            assert_eq!(table.get_u64(key).unwrap(), expected, "key {key}");
        }
        assert_eq!(table.iter().map(Result::unwrap).count() as u64, keys - keys.div_ceil(7));
    }

    #[test]
    fn a_retired_table_has_a_page_for_each_super_table_and_all_its_entries() {
        for threads in [0, 1, 3] {
            let device = MemoryDevice::new();
            let mut table = create(&device, threads);
            for key in 0..7000 {
                table.insert_u64(key, key * 3).unwrap();
            }
            (0..7000u64).step_by(7).for_each(|key| table.remove(&key.to_le_bytes()).unwrap());
            let before = table.stats().ram_bytes;
            let (pages, incarnations) = retire(&table);
            assert_eq!(pages, [1; 4]);
            let config = table.config();
            let buffers = u64::from(config.super_tables + config.spare_buffers);
            let freed = buffers * u64::from(config.buffer_pages) - 4;
            let page_bytes = nandex_device::PAGE_BYTES as u64;
            assert_eq!(config.ram_bytes() - config.retired_ram_bytes(), freed * page_bytes);
            assert!(table.stats().ram_bytes < before, "{} of {before}", table.stats().ram_bytes);
            agrees(&table, 7000);
            table.sync().unwrap();
            let crashed = open(MemoryDevice::from_image(device.image()), threads);
            agrees(&crashed, 7000);
            drop(crashed);
            // A second close finds nothing more to write.
            table.close().unwrap();
            let found = crate::check(Arc::new(device.clone()), None, &mut |_| {}).unwrap();
            assert!(found.ok(), "{found:?}");
            table = open(device, threads);
            agrees(&table, 7000);
            assert_eq!(retire(&table), ([1; 4].into(), incarnations));
            agrees(&table, 7000);
            table.close().unwrap();
        }
    }

    #[test]
    fn the_last_buffers_of_a_full_table_take_the_incarnation_that_was_kept_and_a_crash_loses_none()
    {
        let device = MemoryDevice::new();
        let table = create(&device, 0);
        let mut keys = 0;
        loop {
            match table.insert_u64(keys, keys * 3) {
                Ok(()) => keys += 1,
                Err(Error::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let most = table.config().incarnations_max as usize;
        let (pages, incarnations) = retire(&table);
        assert!(incarnations.contains(&most), "{incarnations:?} of {most}");
        assert_eq!(pages, [1; 4]);
        table.sync().unwrap();
        let crashed = open(MemoryDevice::from_image(device.image()), 0);
        for table in [&table, &crashed] {
            assert!((0..keys).all(|key| table.get_u64(key).unwrap() == Some(key * 3)));
        }
        let (_, incarnations) = retire(&crashed);
        assert!(incarnations.iter().all(|it| *it <= most), "{incarnations:?}");
        assert!((0..keys).all(|key| crashed.get_u64(key).unwrap() == Some(key * 3)));
        crashed.close().unwrap();
    }
}
