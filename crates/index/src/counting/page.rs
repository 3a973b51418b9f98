//! A page of a segment: keys in ascending order and their changes, in as few bytes as they take.
//!
//! ```text
//!   0    2   3   4        8
//!   +----+---+---+--------+-- - - --+-- - - --+-- - - - --+
//!   | n  | f | 0 | next   | n keys  | n codes | long ones |
//!   +----+---+---+--------+-- - - --+-- - - --+-- - - - --+
//! ```
//!
//! A code is an amount of 1 to 255 less 1; code 255 means that a long change follows among the long ones: a byte with
//! its length and whether it removes, then the amount.

use nandex_store::bytes::{get_u16, get_u32, put_u16, put_u32};
use nandex_store::page::PAGE_BODY_BYTES;

use super::change::Change;
use super::entries::Entries;
use super::keys::KeyPlacing;

/// Bytes before the keys.
const HEAD_BYTES: usize = 8;

/// Bytes of a page that entries may take.
pub(super) const CONTENT_BYTES: usize = PAGE_BODY_BYTES - HEAD_BYTES;

/// The code of a change that is among the long ones.
const LONG: u8 = 255;

/// The bit of a long change's first byte that says that it removes.
const REMOVES: u8 = 0x80;

/// Returns the bytes that a change takes in addition to its code.
pub(super) fn long_bytes(change: Change) -> usize {
    match code(change) {
        Some(_) => 0,
        None => 1 + amount_bytes(change.amount),
    }
}

fn code(change: Change) -> Option<u8> {
    let code = u8::try_from(change.amount - 1).ok().filter(|code| *code < LONG);
    code.filter(|_| !change.removes && change.amount > 0)
}

/// Returns the fewest bytes from which an amount can be decoded with its sign.
fn amount_bytes(amount: i64) -> usize {
    let bits = 64 - (amount ^ (amount >> 63)).leading_zeros() as usize;
    if amount == 0 { 0 } else { (bits + 1).div_ceil(8) }
}

/// Fills a page.
#[derive(Debug)]
pub(super) struct PageBuilder {
    width: usize,
    keys: Vec<u8>,
    codes: Vec<u8>,
    long: Vec<u8>,
}

impl PageBuilder {
    /// Creates an empty page for keys of `width` bytes.
    pub(super) fn new(width: usize) -> Self {
        Self { width, keys: Vec::new(), codes: Vec::new(), long: Vec::new() }
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Appends an entry, if it fits.
    #[inline]
    pub(super) fn try_push(&mut self, key: &[u8], change: Change) -> bool {
        let used = self.keys.len() + self.codes.len() + self.long.len();
        let code = code(change);
        let long = if code.is_some() { 0 } else { 1 + amount_bytes(change.amount) };
        if used + self.width + 1 + long > CONTENT_BYTES {
            return false;
        }
        self.keys.extend_from_slice(key);
        self.codes.push(code.unwrap_or(LONG));
        if code.is_none() {
            let bytes = amount_bytes(change.amount);
            let removes = if change.removes { REMOVES } else { 0 };
            self.long.push(bytes as u8 | removes);
            self.long.extend_from_slice(&change.amount.to_le_bytes()[..bytes]);
        }
        true
    }

    /// Writes a page's body and begins the next page. `next` is the overflow page that follows; 0 for none.
    pub(super) fn write(&mut self, body: &mut [u8], goes_on: bool, next: u32) {
        body.fill(0);
        put_u16(body, 0, self.codes.len() as u16);
        body[2] = u8::from(goes_on);
        put_u32(body, 4, next);
        let mut at = HEAD_BYTES;
        for part in [&mut self.keys, &mut self.codes, &mut self.long] {
            body[at..at + part.len()].copy_from_slice(part);
            at += part.len();
            part.clear();
        }
    }
}

/// A page's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountPage<'p> {
    width: usize,
    /// Whether entries that belong on this page continue on the next one.
    pub goes_on: bool,
    /// The overflow page that follows this one; 0 for none.
    pub next: u32,
    keys: &'p [u8],
    codes: &'p [u8],
    long: &'p [u8],
}

impl<'p> CountPage<'p> {
    /// Parses a page's body; `None` if it is not a valid page.
    pub(crate) fn parse(body: &'p [u8], width: usize) -> Option<Self> {
        let (head, rest) = body.split_at_checked(HEAD_BYTES)?;
        let (count, next) = (usize::from(get_u16(head, 0)), get_u32(head, 4));
        let goes_on = match head[2] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (keys, rest) = rest.split_at_checked(count * width)?;
        let (codes, long) = rest.split_at_checked(count)?;
        let is_valid = head[3] == 0 && (goes_on || next == 0);
        is_valid.then_some(Self { width, goes_on, next, keys, codes, long })
    }

    fn key(&self, at: usize) -> &'p [u8] {
        &self.keys[at * self.width..][..self.width]
    }

    /// Returns the change of a key, if it is on this page.
    ///
    /// # Errors
    /// `Err(())` if the change is invalid.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<Change>, ()> {
        let at = match <[u8; 8]>::try_from(key) {
            Ok(wanted) => {
                // A comparison by words, several at a time.
                let wanted = u64::from_le_bytes(wanted);
                let (words, _) = self.keys.as_chunks::<8>();
                words.iter().position(|word| u64::from_le_bytes(*word) == wanted)
            }
            Err(_) => self.keys.chunks_exact(self.width).position(|it| it == key),
        };
        let Some(at) = at else { return Ok(None) };
        let mut long = self.long;
        for code in &self.codes[..at] {
            if *code == LONG {
                take_long(&mut long).ok_or(())?;
            }
        }
        self.change(at, &mut long).map(Some).ok_or(())
    }

    fn change(&self, at: usize, long: &mut &[u8]) -> Option<Change> {
        match self.codes[at] {
            LONG => take_long(long),
            code => Some(Change::add(i64::from(code) + 1)),
        }
    }

    /// Appends all entries; `None` if a change is invalid, or bytes that should be 0 are not.
    pub(crate) fn read(&self, placing: &KeyPlacing, out: &mut Entries) -> Option<()> {
        let mut long = self.long;
        for at in 0..self.codes.len() {
            let (key, change) = (self.key(at), self.change(at, &mut long)?);
            out.push(placing.place(key).1, key, change);
        }
        long.iter().all(|byte| *byte == 0).then_some(())
    }
}

/// Takes the first of the long changes; `None` for invalid bytes.
fn take_long(long: &mut &[u8]) -> Option<Change> {
    let (first, rest) = long.split_first()?;
    let bytes = usize::from(first & !REMOVES);
    let (amount, rest) = rest.split_at_checked(bytes).filter(|_| bytes <= 8)?;
    let mut word = [if amount.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 }; 8];
    word[..bytes].copy_from_slice(amount);
    *long = rest;
    let change = Change { removes: first & REMOVES != 0, amount: i64::from_le_bytes(word) };
    let is_shortest = amount_bytes(change.amount) == bytes && code(change).is_none();
    (is_shortest && !change.is_nothing() && change.amount > i64::MIN).then_some(change)
}

#[cfg(test)]
mod tests {
    use nandex_store::hash::{HashKind, KeyHasher};

    use super::*;
    use crate::counting::keys::Keys;

    fn placing(width: u8) -> KeyPlacing {
        KeyPlacing {
            keys: Keys::Whole(width),
            hasher: KeyHasher::new(HashKind::Xxh3, 3),
            partitions: 1,
        }
    }

    fn changes() -> Vec<Change> {
        let amounts = [1, 2, 254, 255, 256, -1, -128, -129, 1 << 31, i64::MAX, -i64::MAX];
        let adds = amounts.into_iter().map(Change::add);
        adds.chain([Change::REMOVE, Change { removes: true, amount: 3 }]).collect()
    }

    #[test]
    fn a_page_reads_back_and_takes_as_many_as_its_bytes_allow() {
        for width in [1u8, 8, 32] {
            let mut builder = PageBuilder::new(width.into());
            let mut body = vec![0xaa; PAGE_BODY_BYTES];
            let mut held = Vec::new();
            for (number, change) in (0u64..).zip(changes().into_iter().cycle()) {
                let mut key = vec![0; width.into()];
                let bytes = number.to_le_bytes();
                key.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
                if held.len() == 255 || !builder.try_push(&key, change) {
                    break;
                }
                held.push((key, change));
            }
            builder.write(&mut body, true, 9);
            let page = CountPage::parse(&body, width.into()).unwrap();
            assert!(page.goes_on && page.next == 9 && builder.is_empty());
            for (key, change) in &held {
                assert_eq!(page.find(key), Ok(Some(*change)));
            }
            let mut out = Entries::new(width.into());
            page.read(&placing(width), &mut out).unwrap();
            assert_eq!(out.changes, held.iter().map(|it| it.1).collect::<Vec<_>>());
            let used: usize = held.iter().map(|it| usize::from(width) + 1 + long_bytes(it.1)).sum();
            assert!(used <= CONTENT_BYTES);
        }
    }

    #[test]
    fn an_amount_takes_the_fewest_bytes_that_keep_its_sign() {
        let bytes = |amount| long_bytes(Change::add(amount));
        assert_eq!([1, 255, 256, -1, -128, -129].map(bytes), [0, 0, 3, 2, 2, 3]);
        assert_eq!([i64::MAX, -i64::MAX].map(bytes), [9, 9]);
        assert_eq!(long_bytes(Change::REMOVE), 1);
    }

    #[test]
    fn bytes_that_are_no_page_are_refused() {
        let body = vec![0xff; PAGE_BODY_BYTES];
        assert!(CountPage::parse(&body, 8).is_none());
        assert!(CountPage::parse(&body[..5], 8).is_none());
        let mut body = vec![0; PAGE_BODY_BYTES];
        put_u16(&mut body, 0, 1);
        body[HEAD_BYTES + 8] = LONG;
        let page = CountPage::parse(&body, 8).unwrap();
        assert_eq!(page.find(&[0; 8]), Err(()), "a long change of 0");
        assert!(page.read(&placing(8), &mut Entries::new(8)).is_none());
    }
}
