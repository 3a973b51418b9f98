//! Lookups: each generation's buffers and filters, newest generation first, then pages.

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
    /// The oldest generation at the time when the newest one was searched.
    first: usize,
    /// Whether the key's super table was whole when this generation was searched.
    was_whole: bool,
}

/// The next step of a lookup in several generations.
type Step<P> = Result<LookupStep<P, KeyState<Value>>>;

impl Owner<Generations> {
    /// Searches RAM for a key: searches generations, newest first, until one knows it.
    #[inline]
    fn known_in_ram(&self, place: &KeyPlace, key: &[u8]) -> Step<GenerationProbe> {
        let first = self.parts.first();
        self.known_from((first, self.parts.len() - 1), place, key)
    }

    /// Searches RAM as [`known_in_ram`](Self::known_in_ram) does, starting with the given generation; `first` was the
    /// oldest when the lookup began.
    #[inline]
    fn known_from(
        &self,
        from: (usize, usize),
        place: &KeyPlace,
        key: &[u8],
    ) -> Step<GenerationProbe> {
        let mut at = Some(from);
        while let Some((first, generation)) = at {
            let core = self.parts.core(generation);
            let was_whole = generation > first && core.is_whole(place.hash);
            match core.known_in_ram(&core.place_here(place), key)? {
                LookupStep::Answer(KeyState::Unknown) => {
                    at = self.next((first, generation), was_whole, place.hash);
                }
                step => {
                    let probe = |probe| GenerationProbe { generation, probe, first, was_whole };
                    return Ok(step.map_read(probe));
                }
            }
        }
        Ok(LookupStep::Answer(KeyState::Unknown))
    }

    /// Returns the generation to search after one that does not know a key; `first` was the oldest when the lookup
    /// began.
    #[inline]
    fn next(
        &self,
        (first, generation): (usize, usize),
        was_whole: bool,
        hash: KeyHash,
    ) -> Option<(usize, usize)> {
        if generation > first && !was_whole {
            // If it has become whole meanwhile, a removal that it had may have been dropped, together with what that
            // shadowed.
            let is_whole = self.parts.core(generation).is_whole(hash);
            return Some((first, if is_whole { generation } else { generation - 1 }));
        }
        // Entries of an older generation may have been taken over since the newest was searched.
        let (now, newest) = (self.parts.first(), self.parts.len() - 1);
        let is_released = generation < newest && self.parts.core(newest).is_whole(hash);
        (now != first || is_released).then_some((now, newest))
    }

    /// Returns the next step after a page was searched.
    fn known_after_page(&self, probe: &mut GenerationProbe) -> Step<()> {
        let GenerationProbe { generation, first, was_whole, .. } = *probe;
        let core = self.parts.core(generation);
        match core.known_after_page(&mut probe.probe)? {
            LookupStep::Answer(KeyState::Unknown) => {
                let key = *probe.probe.key();
                match self.next((first, generation), was_whole, key.hash) {
                    Some(next) => {
                        let place = core.key_place(key.hash);
                        Ok(self.known_from(next, &place, key.bytes())?.replace(probe))
                    }
                    None => Ok(LookupStep::Answer(KeyState::Unknown)),
                }
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

    /// Returns the place in the newest generation, and in all others whose filters have the same shape.
    #[inline]
    fn locate(&self, key: &[u8]) -> KeyPlace {
        let core = self.parts.core(self.parts.len() - 1);
        core.key_place(core.hasher.hash(key))
    }

    #[inline]
    fn prefetch(&self, place: &KeyPlace) {
        self.parts.cores().for_each(|core| core.prefetch(&core.place_here(place)));
    }

    #[inline]
    fn search_ram(&self, place: &KeyPlace, key: &[u8]) -> UserStep<Self> {
        let step = self.known_in_ram(place, key)?;
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

    /// A small table has several keys of a batch in each page.
    const SORTS_BATCHES: bool = true;

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
