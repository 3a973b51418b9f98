//! The names of a database: which structures it has, and dropping one.

use nandex_device::PAGE_BYTES;
use nandex_store::is_part_of;

use super::{Database, TableOrMap};
use crate::large::table_name;
use crate::registry;
use crate::{Error, Result};

/// The kind that [`Database::structures`] returns for a map, whose parts have kinds of their own.
pub const MAP: &str = "map";

impl Database {
    /// Returns the names and kinds of its structures, in the order in which they were created. A map is one, of kind
    /// [`MAP`]; parts such as the table inside a map and the generations of a table that grows are left out.
    #[must_use]
    pub fn structures(&self) -> Vec<(String, String)> {
        let kind = |name: String| {
            if TableOrMap::is_map(&self.volume, &name) {
                return Some((name, MAP.to_owned()));
            }
            let kind = registry::kind_in(&self.volume, &name).ok()?;
            Some((name, kind))
        };
        TableOrMap::names(&self.volume).into_iter().filter_map(kind).collect()
    }

    /// Drops a structure with all that it holds, durably, and returns the bytes of its pages, which are then free for
    /// other structures of the file. After a crash it is there whole, or gone. The file keeps its length; `nandex
    /// compact` shortens it.
    ///
    /// The structure must not be open. Costs a checkpoint.
    ///
    /// # Errors
    /// No structure of that name, or one that is a part of another; one that is open; a file that is open read-only; a
    /// failed write.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("all.nandex");
    /// let db = nandex::open(&path)?;
    /// db.map("urls").create_or_open()?.put(b"https://example.org/", b"<html>...")?;
    /// assert_eq!(db.structures(), [("urls".to_owned(), nandex::db::MAP.to_owned())]);
    /// assert!(db.drop_structure("urls")? > 0);
    /// assert!(db.structures().is_empty());
    /// # Ok::<(), nandex::Error>(())
    /// ```
    pub fn drop_structure(&self, name: &str) -> Result<u64> {
        let _opening = self.opening();
        let volume = &self.volume;
        let names = TableOrMap::names(volume);
        if !names.iter().any(|it| it == name) {
            return Err(missing(name, &names));
        }
        let bytes = self.pages_bytes(name);
        let keys = table_name(name);
        let is_map = TableOrMap::is_map(volume, name);
        volume.drop_structures(&[name, &keys][..if is_map { 2 } else { 1 }])?;
        Ok(bytes)
    }

    /// The bytes of the pages of a structure and its parts; for a map, including those of its keys.
    pub(super) fn pages_bytes(&self, name: &str) -> u64 {
        let keys = table_name(name);
        let is_map = TableOrMap::is_map(&self.volume, name);
        let owners = || [name].into_iter().chain(is_map.then_some(&keys[..]));
        let is_of = |found: &str| owners().any(|it| found == it || is_part_of(found, it));
        let structures = self.volume.structures();
        let pages = structures.iter().filter(|it| is_of(&it.name)).map(|it| it.pages);
        pages.sum::<u64>() * PAGE_BYTES as u64
    }
}

/// The error of a name that no structure has.
fn missing(name: &str, names: &[String]) -> Error {
    let found = match names {
        [] => "nothing".to_owned(),
        names => names.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join(", "),
    };
    nandex_store::Error::NoSuchStructure { name: name.to_owned(), found }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Policy};

    #[test]
    fn a_structure_of_each_kind_is_listed_without_its_parts_and_dropped_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let db = crate::open(folder.path().join("all.nandex")).unwrap();
        let free = || db.volume().stats().free_pages;
        let map = db.map("m").create_or_open().unwrap();
        map.put(b"key", b"value").unwrap();
        map.close().unwrap();
        drop(db.table("t").entries(1000).create_or_open().unwrap());
        drop(db.table("g").policy(Policy::Grow).create_or_open().unwrap());
        // Filters and counting tables take pages when they write their first run; until then their keys are in the log.
        let filter = db.filter("f").keys(1000).create_or_open().unwrap();
        filter.insert(b"key").unwrap();
        filter.close().unwrap();
        let counting = db.counting("c").keys(1000).create_or_open().unwrap();
        counting.insert(b"the word").unwrap();
        counting.close().unwrap();
        let listed = db.structures();
        let kinds: Vec<_> = listed.iter().map(|(name, kind)| (&name[..], &kind[..])).collect();
        let expected = [
            ("m", MAP),
            ("t", "bufferhash"),
            ("g", "growing"),
            ("f", "cascade"),
            ("c", "counting"),
        ];
        assert_eq!(kinds, expected);
        for name in ["m-keys", "g/g1", "absent"] {
            let refused = db.drop_structure(name).unwrap_err().to_string();
            assert!(refused.ends_with("it holds \"m\", \"t\", \"g\", \"f\", \"c\""), "{refused}");
        }
        for (name, _) in &listed {
            let before = free();
            let bytes = db.drop_structure(name).unwrap();
            assert!(bytes > 0 || ["f", "c"].contains(&&name[..]), "{name}");
            assert!(free() - before >= bytes / PAGE_BYTES as u64, "{name}: {bytes}");
        }
        assert_eq!(db.volume().structures().len(), 0);
        // Nothing of the old map is in a new one of its name.
        let map = db.map("m").create_or_open().unwrap();
        assert_eq!(map.get(b"key").unwrap(), None);
        let refused = db.drop_structure("m").unwrap_err();
        assert!(matches!(refused, Error::Store(nandex_store::Error::Busy { .. })), "{refused}");
        assert_eq!(map.get(b"key").unwrap(), None);
    }
}
