//! The chunks of a run and their places, one by one.

use std::fmt;
use std::path::Path;

use crate::Fingerprint;
use crate::units::printable;

/// A line of the list. A file's chunks precede the file; files are numbered from 0 in the order of the walk. So a list
/// takes no memory, however large a file is.
///
/// Prints as fields with tabs between them, without a line end; control characters of a path are escaped.
#[derive(Clone, Copy, Debug)]
pub enum Listed<'a> {
    /// `chunk`, then each field.
    Chunk {
        /// The number of its file.
        file: u64,
        /// The place where it begins there, in bytes.
        offset: u64,
        /// Its length.
        bytes: u32,
        /// The number of times that it repeats from there on: more than once only in a hole.
        times: u64,
        /// Its name.
        fingerprint: &'a Fingerprint,
        /// Whether it was present before. Printed as `duplicate` or `new`. Of a repeated chunk only the first may be
        /// new.
        is_duplicate: bool,
    },
    /// `file`, then each field.
    File {
        /// Its number.
        number: u64,
        /// The number of its bytes that were read.
        bytes: u64,
        /// Its path.
        path: &'a Path,
    },
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunk { file, offset, bytes, times, fingerprint, is_duplicate } => {
                let state = if *is_duplicate { "duplicate" } else { "new" };
                write!(f, "chunk\t{file}\t{offset}\t{bytes}\t{times}\t{fingerprint}\t{state}")
            }
            Self::File { number, bytes, path } => {
                let path = path.display().to_string();
                write!(f, "file\t{number}\t{bytes}\t{}", printable(&path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hash;

    #[test]
    fn a_path_cannot_break_a_line_or_a_field() {
        let path = Path::new("a\tb\nc");
        let line = Listed::File { number: 7, bytes: 20, path }.to_string();
        assert_eq!((line.lines().count(), line.split('\t').count()), (1, 4), "{line}");
        let fingerprint = &Hash::Sha1.fingerprint(b"abc");
        let chunk = Listed::Chunk {
            file: 7,
            offset: 5,
            bytes: 3,
            times: 1,
            fingerprint,
            is_duplicate: true,
        };
        let name = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(chunk.to_string(), format!("chunk\t7\t5\t3\t1\t{name}\tduplicate"));
    }
}
