//! The value log of a [`LargeTable`](crate::LargeTable) in the [`registry`](crate::registry).

use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::entries::EntryLayout;
use nandex_store::is_part_of;
use nandex_store::values::{self, NewerPages, ValueRef};

use super::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, table_name};
use crate::registry::{Family, Row};
use crate::write::check::visit_entries;
use crate::write::format::{decode_log_entry, decode_put_back};

/// The registry row of the value log.
pub(crate) const ROW: Row = Row {
    kind: values::KIND,
    name: "value log",
    good_for: "Keys and values of any size of a table that refers to them.",
    options: &[],
    family: Family::Part,
    check: |checker, contents, entry, _| {
        values::check(checker, contents, entry);
        check_logged(checker, contents, entry);
        Ok(())
    },
    #[cfg(feature = "testing")]
    decoders: super::testing::DECODERS,
};

/// Checks the records that were put since the last checkpoint, to which the log of the table of references refers.
fn check_logged(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
    let (table, layout) =
        (table_name(&entry.name), EntryLayout::new(TABLE_KEY_BYTES, TABLE_VALUE_BYTES));
    let (Some(mut newer), Ok(layout)) = (NewerPages::of(contents, entry), layout) else { return };
    let is_table = |it: &&CatalogEntry| it.name == table || is_part_of(&it.name, &table);
    for table in contents.catalog.entries.iter().filter(is_table) {
        let read = visit_entries(contents, table, &mut |_, bytes| {
            let back = || decode_put_back(bytes, layout).map(|(_, entry)| entry);
            let put = decode_log_entry(bytes, layout).or_else(back);
            put.and_then(|it| ValueRef::decode(it.value)).into_iter().for_each(|it| newer.note(it));
        });
        if let Err(error) = read {
            let subject = Subject { structure: Some(&table.name), what: "log entry" };
            checker.note_error(subject, contents.log_page(table.tail), &error);
        }
    }
    newer.check(checker);
}
