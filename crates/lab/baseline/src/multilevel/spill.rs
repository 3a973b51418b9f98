//! The effect of an update on a page: the page takes it, or passes it on to the next level. No I/O.

use nandex::raw::Incoming;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHasher;
use nandex_store::records::{Crowded, RecordLayout};

/// The result of applying an update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applied<'e> {
    /// Whether the page has changed.
    pub is_changed: bool,
    /// The update for the next level, if any.
    pub rest: Option<Incoming<'e>>,
}

/// Applies an update to a page. `reaches` says whether the key's pages of later levels have entries.
///
/// A new version goes to the first page of its key that has space; then later levels have to remove an older one, which
/// may be there. A page without space passes it on.
pub(super) fn apply<'e>(
    (layout, hasher): (RecordLayout, &KeyHasher),
    body: &mut [u8],
    update: Incoming<'e>,
    reaches: bool,
) -> Applied<'e> {
    let Incoming { hash, entry } = update;
    let is_here = layout.find(body, hash, entry.key).is_some();
    let removal = Incoming { hash, entry: Entry { state: SlotState::Tombstone, ..entry } };
    let older = (!is_here && reaches).then_some(removal);
    if entry.state == SlotState::Tombstone {
        layout.remove(body, hash, entry.key);
        return Applied { is_changed: is_here, rest: older };
    }
    match layout.insert(body, hasher, (hash, entry.key, entry.value)) {
        Ok(()) => Applied { is_changed: true, rest: older },
        Err(Crowded) => Applied { is_changed: false, rest: Some(update) },
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::hash::HashKind;
    use nandex_store::page::PAGE_BODY_BYTES;

    use super::*;

    const HASHER: KeyHasher = KeyHasher::new(HashKind::Xxh3, 5);
    const LAYOUT: RecordLayout = RecordLayout::new(8, 8, 32);

    fn update(key: &[u8; 8], state: SlotState) -> Incoming<'_> {
        Incoming { hash: HASHER.hash(key), entry: Entry { state, key, value: key } }
    }

    #[test]
    fn a_page_takes_what_it_has_space_for_and_passes_on_what_later_levels_must_do() {
        let mut body = vec![0; PAGE_BODY_BYTES];
        let mut step = |number: u64, state, reaches| {
            let key = number.to_le_bytes();
            let applied = apply((LAYOUT, &HASHER), &mut body, update(&key, state), reaches);
            (applied.is_changed, applied.rest.map(|it| it.entry.state))
        };
        let (live, removed) = (SlotState::Live, SlotState::Tombstone);
        // A new key may be below, unless there is nothing; a key in this page is not.
        assert_eq!(step(1, live, false), (true, None));
        assert_eq!(step(2, live, true), (true, Some(removed)));
        assert_eq!(step(2, live, true), (true, None));
        assert_eq!(step(2, removed, true), (true, None));
        assert_eq!(step(2, removed, true), (false, Some(removed)));
        assert_eq!(step(2, removed, false), (false, None));
        let taken = (10..).take_while(|it| step(*it, live, false).0).count() as u64;
        assert!(taken > 200, "{taken}");
        // The page is crowded at this key's home: the update goes on, whether later levels have anything or
        // not.
        assert_eq!(step(10 + taken, live, false), (false, Some(live)));
        assert_eq!(step(10 + taken - 1, live, true), (true, None));
    }
}
