//! A posting in its sorted form: documents produce them, and they are needed by term. It takes some 3 bytes on disk.

use std::io::{self, BufRead, Write};

use nandex_corpus::sort::Record;

use crate::varint::put_varint;

/// A document that has a term. The order of fields is that of an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Posting {
    pub(super) column: u64,
    pub(super) document: u32,
    pub(super) occurrences: u32,
}

/// The columns since the last one, the documents since the last one of the column, and the occurrences.
impl Record for Posting {
    fn write(&self, last: Option<&Self>, out: &mut impl Write) -> io::Result<()> {
        let last = last.copied().unwrap_or_default();
        let columns = self.column - last.column;
        let before = if columns == 0 { last.document } else { 0 };
        let mut bytes = Vec::new();
        for number in [columns, (self.document - before).into(), self.occurrences.into()] {
            put_varint(&mut bytes, number);
        }
        out.write_all(&bytes)
    }

    fn read(last: Option<&Self>, from: &mut impl BufRead) -> io::Result<Self> {
        let last = last.copied().unwrap_or_default();
        let columns = read_varint(from)?;
        let before = if columns == 0 { last.document } else { 0 };
        let narrow = |number: u64| u32::try_from(number).map_err(io::Error::other);
        let column = last.column.checked_add(columns).ok_or(io::ErrorKind::InvalidData)?;
        let document = narrow(read_varint(from)?)?.checked_add(before);
        let document = document.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { column, document, occurrences: narrow(read_varint(from)?)? })
    }
}

fn read_varint(file: &mut impl BufRead) -> io::Result<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *file.fill_buf()?.first().ok_or(io::ErrorKind::UnexpectedEof)?;
        file.consume(1);
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 || shift > 63 {
            return Ok(number);
        }
    }
}
