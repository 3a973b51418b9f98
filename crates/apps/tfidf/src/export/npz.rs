//! A CSR matrix in the format of `scipy.sparse.load_npz`: a ZIP file of `.npy` arrays.
//!
//! The length of each array precedes it, and is known at the end. So three arrays grow in temporary files, and are
//! copied into the ZIP file when all rows are complete.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::target::Target;
use super::{MatrixShape, npy};
use crate::{Entry, Error, Result};

/// Bytes of a buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// The largest value of a 32-bit index.
const INT32_MAX: u64 = i32::MAX as u64;

/// An array that grows in a file.
#[derive(Debug)]
struct Part(BufWriter<File>);

impl Part {
    fn new(target: &Target) -> Result<Self> {
        let folder = target.scratch_folder();
        let file = tempfile::tempfile_in(&folder);
        let file = file.map_err(Error::file("create a temporary file in", &folder))?;
        Ok(Self(BufWriter::with_capacity(BUFFER_BYTES, file)))
    }

    fn finish(self) -> std::io::Result<BufReader<File>> {
        let mut file = self.0.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }
}

/// The arrays of a matrix, complete.
struct Parts {
    /// 8 bytes for each entry.
    data: BufReader<File>,
    /// 4 bytes for each entry, or 8 if there are more columns than 32-bit numbers.
    indices: BufReader<File>,
    /// 8 bytes for each row, and 8 more.
    starts: BufReader<File>,
}

/// A writer of a matrix, row by row.
#[derive(Debug)]
pub(super) struct NpzWriter {
    target: Target,
    shape: MatrixShape,
    data: Part,
    indices: Part,
    starts: Part,
}

impl NpzWriter {
    pub(super) fn new(path: &Path, columns: u64) -> Result<Self> {
        let target = Target::new(path)?;
        let part = || Part::new(&target);
        let (data, indices, mut starts) = (part()?, part()?, part()?);
        starts.0.write_all(&0_u64.to_le_bytes()).map_err(Error::file("write", path))?;
        let shape = MatrixShape { columns, ..MatrixShape::default() };
        Ok(Self { target, shape, data, indices, starts })
    }

    /// Returns the number of rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.shape.rows
    }

    pub(super) fn push(&mut self, row: &[Entry]) -> Result<()> {
        self.shape.rows += 1;
        self.shape.entries += row.len() as u64;
        self.append(row).map_err(Error::file("write", self.target.path()))
    }

    fn append(&mut self, row: &[Entry]) -> std::io::Result<()> {
        let index_bytes = index_bytes(self.shape.columns);
        for entry in row {
            self.data.0.write_all(&entry.value.to_le_bytes())?;
            self.indices.0.write_all(&entry.column.to_le_bytes()[..index_bytes])?;
        }
        self.starts.0.write_all(&self.shape.entries.to_le_bytes())
    }

    pub(super) fn finish(self) -> Result<MatrixShape> {
        let Self { target, shape, data, indices, starts } = self;
        let path = target.path().to_path_buf();
        let write = || -> std::io::Result<Target> {
            let (data, indices, starts) = (data.finish()?, indices.finish()?, starts.finish()?);
            let parts = Parts { data, indices, starts };
            if target.is_regular() {
                return assemble(ZipWriter::new(target), shape, parts);
            }
            // A pipe cannot seek: there the lengths follow the arrays, and are at the end.
            Ok(assemble(ZipWriter::new_stream(target), shape, parts)?.into_inner())
        };
        write().map_err(Error::file("write", &path))?.finish()?;
        Ok(shape)
    }
}

/// Returns the bytes of a column's number in its temporary file.
fn index_bytes(columns: u64) -> usize {
    if columns <= INT32_MAX { 4 } else { 8 }
}

/// Writes all arrays into the ZIP file. As in scipy, both arrays of numbers have 32 bits if all of them fit.
fn assemble<W: Write + Seek>(
    mut zip: ZipWriter<W>,
    shape: MatrixShape,
    mut parts: Parts,
) -> std::io::Result<W> {
    let MatrixShape { rows, columns, entries } = shape;
    let is_small = rows.max(columns).max(entries) <= INT32_MAX;
    let (kind, bytes) = if is_small { ("<i4", 4) } else { ("<i8", 8) };
    let vector = |len: u64| format!("({len},)");
    begin(&mut zip, "indices", kind, &vector(entries))?;
    copy_numbers(&mut parts.indices, (index_bytes(columns), bytes), &mut zip)?;
    begin(&mut zip, "indptr", kind, &vector(rows + 1))?;
    copy_numbers(&mut parts.starts, (8, bytes), &mut zip)?;
    begin(&mut zip, "format", "|S3", "()")?;
    zip.write_all(b"csr")?;
    begin(&mut zip, "shape", "<i8", "(2,)")?;
    zip.write_all(&rows.to_le_bytes())?;
    zip.write_all(&columns.to_le_bytes())?;
    begin(&mut zip, "data", "<f8", &vector(entries))?;
    std::io::copy(&mut parts.data, &mut zip)?;
    Ok(zip.finish()?)
}

/// Begins an array of the ZIP file. Nothing is compressed: numbers hardly shrink, and reading stays direct.
fn begin<W: Write + Seek>(
    zip: &mut ZipWriter<W>,
    name: &str,
    kind: &str,
    shape: &str,
) -> std::io::Result<()> {
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    zip.start_file(format!("{name}.npy"), options)?;
    zip.write_all(&npy::header(kind, shape))
}

/// Copies little-endian numbers of `from` bytes each as numbers of `to` bytes, into which they fit.
fn copy_numbers(
    source: &mut impl Read,
    (from, to): (usize, usize),
    target: &mut impl Write,
) -> std::io::Result<()> {
    if from == to {
        return std::io::copy(source, target).map(drop);
    }
    let mut chunk = Vec::with_capacity(BUFFER_BYTES);
    let mut copied = Vec::with_capacity(BUFFER_BYTES * 2);
    loop {
        chunk.clear();
        copied.clear();
        source.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            return Ok(());
        }
        for number in chunk.chunks(from) {
            let mut wide = [0; 8];
            wide[..number.len()].copy_from_slice(number);
            copied.extend_from_slice(&wide[..to]);
        }
        target.write_all(&copied)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_widened_and_narrowed() {
        let numbers: Vec<u64> = (0..100_000).map(|n| n * 21_474).collect();
        let bytes = |width: usize| -> Vec<u8> {
            numbers.iter().flat_map(|n| n.to_le_bytes()[..width].to_vec()).collect()
        };
        for (from, to) in [(4, 4), (4, 8), (8, 4), (8, 8)] {
            let mut copied = Vec::new();
            copy_numbers(&mut &bytes(from)[..], (from, to), &mut copied).unwrap();
            assert!(copied == bytes(to), "{from} to {to}");
        }
    }
}
