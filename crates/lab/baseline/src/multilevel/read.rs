//! The reads of a lookup below the buffers: the key's page of each level that has entries there, from the
//! first on.

use std::sync::Arc;

use nandex::Value;
use nandex::raw::{GroupLookups, GroupPlace, GroupStep, LookupKey};
use nandex_store::hash::KeyHash;
use nandex_store::page::PageLabel;
use nandex_store::reads::LookupStep;

use super::Levels;
use super::levels::{FoundPage, LevelMap};

/// The point at which a lookup continues.
#[derive(Clone, Debug)]
pub struct NextLevel {
    /// The levels that it saw; its groups keep their pages meanwhile.
    map: Arc<LevelMap>,
    level: usize,
}

impl GroupLookups for Levels {
    type Map = LevelMap;
    type Way = NextLevel;

    fn first(&self, map: &Arc<LevelMap>, key: &LookupKey) -> GroupStep<NextLevel> {
        self.descend(map, 0, key)
    }

    fn next(&self, way: &NextLevel, key: &LookupKey) -> GroupStep<NextLevel> {
        self.descend(&way.map, way.level, key)
    }

    fn note_page(&self, label: PageLabel, page: &[u8]) {
        self.cache.put(label, page);
    }

    fn may_have(&self, map: &LevelMap, hash: KeyHash) -> bool {
        map.reaches(self.plan, 0, hash)
    }
}

impl Levels {
    /// Continues from a level: through pages in RAM, to the answer or to the next page to read.
    fn descend(
        &self,
        map: &Arc<LevelMap>,
        mut from: usize,
        key: &LookupKey,
    ) -> GroupStep<NextLevel> {
        while let Some(FoundPage { level, group, index }) = map.next_page(self.plan, from, key.hash)
        {
            let label = group.place.label(index as u64);
            from = level + 1;
            match self.cache.with(label, |body| self.find(body, key)) {
                None => {
                    let way = NextLevel { map: Arc::clone(map), level: from };
                    return LookupStep::Read(GroupPlace { group, table: index as u32, way });
                }
                Some(None) => {}
                Some(found) => return LookupStep::Answer(found),
            }
        }
        LookupStep::Answer(None)
    }

    fn find(&self, body: &[u8], key: &LookupKey) -> Option<Value> {
        let slot = self.records.find(body, key.hash, key.bytes())?;
        Some(Value::new(self.records.value(body, slot)))
    }
}
