//! The offline check of a specimen: its configuration, its map, and its entries in the log.

use nandex::{Error, Result};
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;

use super::Config;

/// Checks one specimen and reports its faults to the checker.
pub(super) fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
    let start = contents.superblock.checkpoint.start;
    let subject = |what| Subject { structure: Some(&entry.name), what };
    let (config, entries) = match decode(contents, entry) {
        Ok(decoded) => decoded,
        Err(error) => return checker.note(subject("configuration and map"), start, error),
    };
    checker.count_entries(&entry.name, entries);
    let mut wrong = Vec::new();
    let read = contents.visit_log(&mut |lsn, id, entry_bytes, bytes| {
        if id == entry.id && lsn >= entry.tail && entry_bytes > 0 {
            let updates = bytes.chunks_exact(entry_bytes);
            let errors = updates.filter_map(|bytes| config.decode_update(lsn, bytes).err());
            wrong.extend(errors.map(|error| (lsn, error)));
        }
        Ok(())
    });
    for (lsn, error) in wrong {
        checker.note(subject("log entry"), contents.log_page(lsn), error);
    }
    if let Err(error) = read {
        checker.note_error(subject("log entry"), contents.log_page(entry.tail), &error);
    }
}

fn decode(contents: &Contents, entry: &CatalogEntry) -> Result<(Config, u64)> {
    let start = contents.superblock.checkpoint.start;
    let config = Config::decode(&mut Reader::new(&entry.config, "specimen configuration", start))?;
    let mut before: Option<Vec<u8>> = None;
    let mut state = Reader::new(&entry.state, "specimen state", start);
    let entries = config.decode_state(&mut state, &mut |key, _| {
        if before.as_deref().is_some_and(|before| before >= key) {
            let found = format!("{key:02x?} behind {before:02x?}");
            return Err(Error::Store(nandex_store::Error::corrupt(
                "specimen state",
                start,
                "keys that ascend",
                found,
            )));
        }
        before = Some(key.to_vec());
        Ok(())
    })?;
    Ok((config, entries))
}
