//! Checks a growing table offline: its configuration, and that its generations fit it. Their pages are checked with
//! each generation's own catalog entry.

use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;

use super::{Config, GENERATION_KIND, generation_number};
use crate::bufferhash;
use crate::write::check::note;

/// Checks one growing table and notes flaws in the checker.
pub(super) fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
    let place = contents.superblock.checkpoint.start;
    let subject = Subject { structure: Some(&entry.name), what: "configuration" };
    let config = match Config::decode(&mut Reader::new(&entry.config, "configuration", place)) {
        Ok(config) => config,
        Err(error) => return note(checker, subject, place, &error),
    };
    let is_own = |it: &&CatalogEntry| {
        it.kind == GENERATION_KIND && generation_number(&entry.name, &it.name).is_some()
    };
    for generation in contents.catalog.entries.iter().filter(is_own) {
        let mut reader = Reader::new(&generation.config, "configuration", place);
        let decoded = bufferhash::Config::decode(&mut reader);
        let fits = decoded.is_ok_and(|it| config.fits(&it));
        if !fits {
            let message = format!("generation {:?} has other buffers or filters", generation.name);
            checker.note(subject, place, message);
        }
    }
}
