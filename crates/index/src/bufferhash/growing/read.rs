//! Lookups: each generation's buffers and filters, newest generation first, then pages.

use std::ops::Range;

use nandex_device::PageBuf;
use nandex_store::entries::KeyState;
use nandex_store::hash::KeyHash;
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace, UserStep};

use super::Generations;
use crate::api::Value;
use crate::bufferhash::read::IncarnationProbe;
use crate::bufferhash::table::KeyPlace;
use crate::grow::Owner;
use crate::lookup::{KeyLookup, LookupKey, Lookups, TableLookup};
use crate::{Error, Result};

/// A lookup that reads incarnations of one generation.
#[derive(Clone, Debug)]
pub(crate) struct GenerationProbe {
    generation: usize,
    probe: IncarnationProbe,
}

/// The next step of a lookup in several generations.
type Step<P> = Result<LookupStep<P, KeyState<Value>>>;

impl Owner<Generations> {
    /// What RAM knows of a key in some generations. Without an answer in one, the next older one is asked.
    #[inline]
    fn known_in_ram(
        &self,
        generations: Range<usize>,
        place: &KeyPlace,
        key: &[u8],
    ) -> Step<GenerationProbe> {
        for generation in generations.rev() {
            match self.parts.core(generation).known_in_ram(place, key)? {
                LookupStep::Answer(KeyState::Unknown) => {}
                step => return Ok(step.map_read(|probe| GenerationProbe { generation, probe })),
            }
        }
        Ok(LookupStep::Answer(KeyState::Unknown))
    }

    /// What is known after a page was looked at.
    fn known_after_page(&self, probe: &mut GenerationProbe) -> Step<()> {
        let core = self.parts.core(probe.generation);
        match core.known_after_page(&mut probe.probe)? {
            LookupStep::Answer(KeyState::Unknown) => {
                let key = *probe.probe.key();
                let place = core.key_place(key.hash);
                let older = 0..probe.generation;
                Ok(self.known_in_ram(older, &place, key.bytes())?.replace(probe))
            }
            step => Ok(step),
        }
    }
}

impl KeyLookup for Owner<Generations> {
    type KeyPlace = KeyPlace;

    #[inline]
    fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        Error::check_width("key", key, self.key_bytes)
    }

    /// One place for all generations: their buffers and filters have the same shape.
    #[inline]
    fn locate(&self, key: &[u8]) -> KeyPlace {
        let core = self.parts.core(0);
        core.key_place(core.hasher.hash(key))
    }

    #[inline]
    fn prefetch(&self, place: &KeyPlace) {
        self.parts.cores().for_each(|core| core.prefetch(place));
    }

    #[inline]
    fn search_ram(&self, place: &KeyPlace, key: &[u8]) -> UserStep<Self> {
        let step = self.known_in_ram(0..self.parts.len(), place, key)?;
        Ok(step.map_answer(KeyState::value))
    }

    #[inline]
    fn is_found(value: &Option<Value>) -> bool {
        value.is_some()
    }
}

impl TableLookup for Owner<Generations> {
    #[inline]
    fn hash_of(place: &KeyPlace) -> KeyHash {
        place.hash
    }

    #[inline]
    fn key_of(probe: &GenerationProbe) -> &LookupKey {
        probe.probe.key()
    }
}

impl PageReads for Owner<Generations> {
    type Probe = GenerationProbe;
    type Answer = Option<Value>;
    type Error = Error;

    #[inline]
    fn place(&self, probe: &GenerationProbe, part: u32) -> ReadPlace {
        self.parts.core(probe.generation).place(&probe.probe, part)
    }

    fn look(&self, probe: &mut GenerationProbe, part: u32, page: &PageBuf) -> Result<()> {
        self.parts.core(probe.generation).look(&mut probe.probe, part, page)
    }

    fn next(&self, probe: &mut GenerationProbe) -> NextStep<Self> {
        Ok(self.known_after_page(probe)?.map_answer(KeyState::value))
    }
}
