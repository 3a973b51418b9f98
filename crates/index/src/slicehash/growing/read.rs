//! Lookups in the newest table, which asks the older one for partitions that have not split yet.

use std::sync::Arc;

use nandex_device::PageBuf;
use nandex_store::hash::KeyHash;
use nandex_store::reads::{NextStep, PageReads, ReadPlace, UserStep};

use super::{Core, Tables};
use crate::api::Value;
use crate::grow::Owner;
use crate::lookup::{KeyLookup, LookupKey, Lookups, TableLookup};
use crate::slicehash::read::SliceProbe;
use crate::{Error, Result};

/// A lookup that reads pages of the table that was the newest when it began.
#[derive(Clone, Debug)]
pub(crate) struct TableProbe {
    core: Arc<Core>,
    probe: SliceProbe,
    /// Whether that table was dropped meanwhile.
    is_stale: bool,
}

impl KeyLookup for Owner<Tables> {
    type KeyPlace = KeyHash;

    #[inline]
    fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        Error::check_width("key", key, self.key_bytes)
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> KeyHash {
        self.volume.hasher().hash(key)
    }

    #[inline]
    fn prefetch(&self, hash: &KeyHash) {
        self.parts.core().prefetch(hash);
    }

    #[inline]
    fn search_ram(&self, hash: &KeyHash, key: &[u8]) -> UserStep<Self> {
        let core = self.parts.core();
        let step = core.search_ram(hash, key)?;
        Ok(step.map_read(|probe| TableProbe { core, probe, is_stale: false }))
    }

    #[inline]
    fn is_found(value: &Option<Value>) -> bool {
        value.is_some()
    }
}

impl TableLookup for Owner<Tables> {
    #[inline]
    fn hash_of(place: &KeyHash) -> KeyHash {
        *place
    }

    #[inline]
    fn key_of(probe: &TableProbe) -> &LookupKey {
        probe.probe.key()
    }
}

impl PageReads for Owner<Tables> {
    type Probe = TableProbe;
    type Answer = Option<Value>;
    type Error = Error;

    fn parts(&self, probe: &TableProbe) -> u32 {
        probe.core.parts(&probe.probe)
    }

    #[inline]
    fn place(&self, probe: &TableProbe, part: u32) -> ReadPlace {
        probe.core.place(&probe.probe, part)
    }

    fn look(&self, probe: &mut TableProbe, part: u32, page: &PageBuf) -> Result<()> {
        match probe.core.look(&mut probe.probe, part, page) {
            // Its pages may have been reused.
            Err(_) if !Arc::ptr_eq(&probe.core, &self.parts.core()) => {
                probe.is_stale = true;
                Ok(())
            }
            result => result,
        }
    }

    fn next(&self, probe: &mut TableProbe) -> NextStep<Self> {
        if probe.is_stale {
            let key: LookupKey = *probe.probe.key();
            return Ok(self.search_ram(&key.hash, key.bytes())?.replace(probe));
        }
        probe.core.next(&mut probe.probe)
    }
}
