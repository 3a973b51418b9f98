//! Proves a growing table offline: its configuration, and that its generations fit it. Their pages are proven with
//! each generation's own catalog entry.

use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;

use super::{Config, GENERATION_KIND, generation_name};
use crate::bufferhash;
use crate::write::check::note;

/// Checks one growing table and notes in the checker what is wrong with it.
pub(super) fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
    let place = contents.superblock.checkpoint.start;
    let subject = Subject { structure: Some(&entry.name), what: "configuration" };
    let config = match Config::decode(&mut Reader::new(&entry.config, "configuration", place)) {
        Ok(config) => config,
        Err(error) => return note(checker, subject, place, &error),
    };
    let generations = (1..).map(|number| generation_name(&entry.name, number));
    let found = generations.map_while(|name| contents.catalog.find(&name));
    for generation in found.take_while(|it| it.kind == GENERATION_KIND) {
        let mut reader = Reader::new(&generation.config, "configuration", place);
        let fits = bufferhash::Config::decode(&mut reader).is_ok_and(|it| {
            it.filter == config.first.filter && it.buffer_pages == config.first.buffer_pages
        });
        if !fits {
            let message = format!("generation {:?} has other buffers or filters", generation.name);
            checker.note(subject, place, message);
        }
    }
}
