//! The lookup path: a partition's buffers, then the slices of the key's positions.
//!
//! The positions are known before anything is read. So all reads of a lookup are issued at once, each to the channel
//! that has its page, in single lookups, batches and streams alike. A read that another one would have made unnecessary
//! is already in flight by then.

use nandex_device::PageBuf;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace};
use nandex_store::shadow::Block;

use super::config::{HASHES_MAX, INCARNATIONS_MAX};
use super::format::Fingerprint;
use super::{Inner, State};
use crate::lookup::{self, KeyLookup, Lookups};
use crate::{Error, Result};

/// Bytes of the widest slice.
const SLICE_BYTES_MAX: usize = INCARNATIONS_MAX as usize / 8;

/// A lookup that reads slices.
#[derive(Clone, Debug)]
pub(crate) struct SliceProbe {
    fingerprint: Fingerprint,
    /// The partition's slicetable when its buffers were searched.
    block: Block,
    /// The pages of the key's positions, each once; only the first `pages_len` are used.
    pages: [u32; HASHES_MAX as usize],
    pages_len: u32,
    /// The incarnations that have all bits of the key that were read so far.
    columns: [u8; SLICE_BYTES_MAX],
    /// Whether the slicetable was replaced, and its place written again, since the buffers were searched.
    is_stale: bool,
}

impl SliceProbe {
    fn new(inner: &Inner, fingerprint: Fingerprint, block: Block) -> Self {
        let mut pages = [0; HASHES_MAX as usize];
        let mut len = 0;
        for position in inner.codec.0.positions(fingerprint) {
            let page = inner.layout.slices.page_of(position);
            if !pages[..len].contains(&page) {
                pages[len] = page;
                len += 1;
            }
        }
        let columns = [u8::MAX; SLICE_BYTES_MAX];
        Self { fingerprint, block, pages, pages_len: len as u32, columns, is_stale: false }
    }
}

/// Lookups in a filter.
#[derive(Clone, Copy)]
pub(crate) struct ContainsLookup<'i>(pub(super) &'i Inner);

impl KeyLookup for ContainsLookup<'_> {
    type KeyPlace = (usize, Fingerprint);

    fn lookups(&self) -> &Lookups {
        &self.0.lookups
    }

    fn locate(&self, key: &[u8]) -> (usize, Fingerprint) {
        self.0.place(key)
    }

    fn prefetch(&self, &(index, fingerprint): &(usize, Fingerprint)) {
        self.0.partitions[index].read().prefetch_active(|it| it.prefetch(fingerprint));
    }

    fn search_ram(
        &self,
        &(index, fingerprint): &(usize, Fingerprint),
        _key: &[u8],
    ) -> Result<LookupStep<SliceProbe, bool>> {
        let state = self.0.partitions[index].read();
        if state.has(fingerprint)? {
            return Ok(LookupStep::Answer(true));
        }
        let block = self.0.layout.shadow.block(index as u32);
        drop(state);
        Ok(match block {
            None => LookupStep::Answer(false),
            Some(block) => LookupStep::Read(SliceProbe::new(self.0, fingerprint, block)),
        })
    }

    fn is_found(found: &bool) -> bool {
        *found
    }
}

impl PageReads for ContainsLookup<'_> {
    type Probe = SliceProbe;
    type Answer = bool;
    type Error = Error;

    /// The pages of all positions are read at once.
    fn parts(&self, probe: &SliceProbe) -> u32 {
        probe.pages_len
    }

    fn place(&self, probe: &SliceProbe, part: u32) -> ReadPlace {
        let shadow = &self.0.layout.shadow;
        let page = shadow.page(probe.block, probe.pages[part as usize].into());
        ReadPlace::page(page, shadow.page(probe.block, 0))
    }

    fn look(&self, probe: &mut SliceProbe, part: u32, page: &PageBuf) -> Result<()> {
        let (layout, number) = (&self.0.layout, probe.pages[part as usize]);
        let label = layout.shadow.label(probe.block, number.into(), PageKind::Slice);
        let body = match RawPage::new(page.page(0)).check(label) {
            Ok(page) => page.body(),
            Err(error) => {
                let index = self.0.codec.0.partition(probe.fingerprint) as u32;
                if layout.shadow.is_current(index, probe.block) {
                    return Err(error.into());
                }
                probe.is_stale = true;
                return Ok(());
            }
        };
        for position in self.0.codec.0.positions(probe.fingerprint) {
            if layout.slices.page_of(position) == number {
                let slice = layout.slices.slice(body, position);
                probe.columns.iter_mut().zip(slice).for_each(|(have, bits)| *have &= bits);
            }
        }
        Ok(())
    }

    fn next(&self, probe: &mut SliceProbe) -> NextStep<Self> {
        if probe.is_stale {
            let fingerprint = probe.fingerprint;
            let place = (self.0.codec.0.partition(fingerprint), fingerprint);
            return Ok(self.search_ram(&place, &[])?.replace(probe));
        }
        let slice = &probe.columns[..self.0.layout.slices.slice_bytes];
        Ok(LookupStep::Answer(slice.iter().any(|columns| *columns != 0)))
    }
}

impl Inner {
    pub(super) fn contains(&self, key: &[u8]) -> Result<bool> {
        lookup::single(&ContainsLookup(self), key)
    }

    pub(super) fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        lookup::batch(&ContainsLookup(self), keys)
    }
}

impl State {
    /// Returns whether a buffer has all bits of a key.
    pub(super) fn has(&self, fingerprint: Fingerprint) -> Result<bool> {
        Ok(self.buffers()?.any(|buffer| buffer.has(fingerprint)))
    }
}
