//! The input of the next checkpoint: the superblock, the catalog of structures, and the free space.

use std::collections::HashSet;

use nandex_device::Device;

use super::Structure;
use crate::checkpoint::{Catalog, CatalogEntry};
use crate::mutants::{Barrier, is_on};
use crate::space::{Extent, Space};
use crate::superblock::Superblock;
use crate::{Error, Lsn, Result, StructureId};

/// The input of the next checkpoint.
#[derive(Debug)]
pub(super) struct Root {
    pub superblock: Superblock,
    pub catalog: Catalog,
    pub space: Space,
    pub spare: Option<Extent>,
    /// Extents of structures that were removed, or that structures freed, since the last durable checkpoint,
    /// which still refers to them.
    pub removed: Vec<Extent>,
    pub checkpoints: u64,
    /// The structures that take no part in checkpoints and need no updates of the log.
    pub idle: HashSet<StructureId>,
}

impl Root {
    pub fn add(
        &mut self,
        device: &dyn Device,
        name: &str,
        kind: &str,
        config: Vec<u8>,
        (pages, tail): (u64, Lsn),
    ) -> Result<Structure> {
        if self.catalog.find(name).is_some() {
            return Err(Error::Exists { name: name.into() });
        }
        let Some(next_id) = self.catalog.next_id.checked_add(1) else {
            return Err(Error::config("name", "a volume names at most 65,534 structures, ever"));
        };
        let extents = match pages {
            0 => Vec::new(),
            _ => vec![self.allocate(device, pages)?],
        };
        let id = StructureId(self.catalog.next_id);
        let structure =
            Structure { id, name: name.into(), config, state: Vec::new(), extents, tail };
        self.catalog.next_id = next_id;
        self.idle.insert(id);
        self.catalog.entries.push(CatalogEntry {
            id,
            name: name.into(),
            kind: kind.into(),
            config: structure.config.clone(),
            state: Vec::new(),
            tail,
            extents: structure.extents.clone(),
        });
        Ok(structure)
    }

    pub fn allocate(&mut self, device: &dyn Device, pages: u64) -> Result<Extent> {
        let before = self.space.clone();
        let extent = self.space.allocate(pages);
        if let Err(error) = device.grow(self.space.page_count()) {
            self.space = before;
            return Err(error.into());
        }
        Ok(extent)
    }

    pub fn remove(&mut self, id: StructureId) {
        self.idle.remove(&id);
        let entries = &mut self.catalog.entries;
        if let Some(index) = entries.iter().position(|entry| entry.id == id) {
            let entry = entries.remove(index);
            self.removed.extend(entry.extents);
            if !is_on(Barrier::RemovedFreedAfterCheckpoint) {
                self.release_removed();
            }
        }
    }

    /// Renames a structure, and replaces its stored configuration if one is given.
    pub fn take_place(&mut self, id: StructureId, name: String, config: Option<Vec<u8>>) {
        if let Some(entry) = self.catalog.entries.iter_mut().find(|entry| entry.id == id) {
            entry.name = name;
            entry.config = config.unwrap_or_else(|| std::mem::take(&mut entry.config));
        }
    }

    pub fn kind_of(&self, name: &str) -> Result<String> {
        let missing = || Error::NoSuchStructure { name: name.into(), found: self.catalog.names() };
        Ok(self.catalog.find(name).ok_or_else(missing)?.kind.clone())
    }

    pub fn find(&self, name: &str, kind: &str) -> Result<Structure> {
        let found = self.kind_of(name)?;
        if found != kind {
            return Err(Error::Kind { name: name.into(), expected: kind.into(), found });
        }
        let entry = self.catalog.find(name).expect("kind_of found it");
        Ok(Structure::from(entry))
    }
}
