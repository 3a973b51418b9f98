//! Checks a growing SliceHash offline: its configuration, and that its tables fit it. Their pages are checked with each
//! table's own catalog entry.

use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;

use super::config::has_shape;
use super::tables::table_number;
use super::{Config, TABLE_KIND};
use crate::slicehash;
use crate::write::check::note;

/// Checks one growing table and notes flaws in the checker.
pub(super) fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
    let place = contents.superblock.checkpoint.start;
    let subject = Subject { structure: Some(&entry.name), what: "configuration" };
    let config = match Config::decode(&mut Reader::new(&entry.config, "configuration", place)) {
        Ok(config) => config,
        Err(error) => return note(checker, subject, place, &error),
    };
    let tables = contents.catalog.entries.iter();
    let is_part =
        |it: &&CatalogEntry| it.kind == TABLE_KIND && table_number(&entry.name, &it.name).is_some();
    for table in tables.filter(is_part) {
        let mut reader = Reader::new(&table.config, "configuration", place);
        let fits = slicehash::Config::decode(&mut reader).is_ok_and(|it| has_shape(&config, &it));
        if !fits {
            let message = format!("table {:?} has other entries or slicetables", table.name);
            checker.note(subject, place, message);
        }
    }
}
