//! A term in its sorted form: a key, with its payload.

use std::cmp::Ordering;
use std::io::{self, BufRead, Read, Write};

use nandex_corpus::sort::Record;

/// The bytes of a payload.
pub(super) const PAYLOAD_BYTES: usize = 24;

/// The bytes of an allocation in addition to its content.
const ALLOCATION_BYTES: usize = 16;

/// A key, followed by its payload.
#[derive(Debug)]
pub(super) struct Sortable(Box<[u8]>);

impl Sortable {
    pub(super) fn new(key: &[u8], payload: &[u8; PAYLOAD_BYTES]) -> Self {
        Self([key, payload].concat().into_boxed_slice())
    }

    pub(super) fn parts(&self) -> (&[u8], &[u8; PAYLOAD_BYTES]) {
        self.0.split_last_chunk().unwrap_or((&[], &[0; PAYLOAD_BYTES]))
    }
}

impl Ord for Sortable {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().0.cmp(other.parts().0)
    }
}

impl PartialOrd for Sortable {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sortable {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Sortable {}

/// Its length and its bytes.
impl Record for Sortable {
    fn heap_bytes(&self) -> usize {
        self.0.len() + ALLOCATION_BYTES
    }

    fn write(&self, _: Option<&Self>, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&(self.0.len() as u64).to_le_bytes())?;
        out.write_all(&self.0)
    }

    fn read(_: Option<&Self>, from: &mut impl BufRead) -> io::Result<Self> {
        let mut len = [0; 8];
        from.read_exact(&mut len)?;
        let (len, mut bytes) = (u64::from_le_bytes(len), Vec::new());
        let read = from.take(len).read_to_end(&mut bytes)?;
        match read as u64 == len && read >= PAYLOAD_BYTES {
            true => Ok(Self(bytes.into_boxed_slice())),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
