//! `nandex tfidf export`: writes the TF-IDF matrix of documents to files for other programs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use nandex_tfidf::{Corpus, MatrixFiles, MatrixShape, Model, ParquetFiles};
use serde::Serialize;

use crate::cmd::document_index::IndexArgs;
use crate::console::{Console, aligned};
use crate::interrupt::Interrupt;
use crate::refuse;
use crate::size::show_count;
use crate::texts::{InputArgs, Inputs, OnInterrupt, Stream};

use super::hints::explained;
use super::model::{SelectionArgs, WeightingArgs, fit};

/// The index, the documents and the files.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    weighting: WeightingArgs,
}

/// The files that are written. Existing regular files are replaced when the new ones are complete.
#[derive(Clone, Debug, clap::Args)]
struct FileArgs {
    /// Write the matrix for scipy.sparse.load_npz
    #[arg(long, value_name = "FILE", required_unless_present = "parquet")]
    npz: Option<PathBuf>,
    /// Write the matrix in Parquet: a row with id, indices and values for each document
    #[arg(long, value_name = "FILE", conflicts_with = "npz")]
    parquet: Option<PathBuf>,
    /// File for the terms of the columns: JSON lines, or Parquet with --parquet; default: next to the matrix, with
    /// .vocabulary in its name, or none if the matrix is not a regular file
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
    /// File for the ids of the rows, as JSON lines; default: next to the matrix, with .documents in its name, or none
    /// if the matrix is not a regular file
    #[arg(long, value_name = "FILE", conflicts_with = "parquet")]
    documents: Option<PathBuf>,
}

/// The output files.
#[derive(Clone, Debug, Serialize)]
struct Outputs {
    matrix: PathBuf,
    vocabulary: Option<PathBuf>,
    /// None for Parquet, whose matrix has them.
    documents: Option<PathBuf>,
    #[serde(skip)]
    format: Format,
}

/// The format of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Npz,
    Parquet,
}

/// The result.
#[derive(Debug, Serialize)]
struct Exported {
    #[serde(flatten)]
    files: Outputs,
    rows: u64,
    columns: u64,
    entries: u64,
}

impl FileArgs {
    /// Returns the files by their names, or by that of the matrix.
    fn outputs(&self) -> Option<Outputs> {
        let (matrix, format, ending) = match (&self.npz, &self.parquet) {
            (Some(matrix), _) => (matrix, Format::Npz, "jsonl"),
            (None, Some(matrix)) => (matrix, Format::Parquet, "parquet"),
            // One of them is required.
            (None, None) => return None,
        };
        let next_to = |what: &str| {
            is_regular(matrix).then(|| matrix.with_extension(format!("{what}.{ending}")))
        };
        let vocabulary = self.vocabulary.clone().or_else(|| next_to("vocabulary"));
        let documents = self.documents.clone().or_else(|| next_to("documents"));
        let documents = documents.filter(|_| format == Format::Npz);
        Some(Outputs { matrix: matrix.clone(), vocabulary, documents, format })
    }
}

impl Outputs {
    fn all(&self) -> impl Iterator<Item = &Path> {
        let others = self.vocabulary.iter().chain(&self.documents);
        [&self.matrix].into_iter().chain(others).map(PathBuf::as_path)
    }

    /// Fails if a file is also read, or written twice. A device may be named twice.
    fn refuse_used(&self, index: &Path, inputs: &Inputs) -> Result<()> {
        let place = |path: &Path| fs::canonicalize(path).or_else(|_| std::path::absolute(path));
        let mut used = vec![place(index)?];
        for path in inputs.paths() {
            used.push(place(path)?);
        }
        for path in self.all().filter(|path| is_regular(path)) {
            let place = place(path)?;
            if used.contains(&place) {
                let shown = path.display();
                refuse!(
                    "cannot write {shown}: this command reads it, or writes it twice; name another file"
                );
            }
            used.push(place);
        }
        Ok(())
    }
}

/// Writes the matrix, and its accompanying files.
///
/// # Errors
/// As for opening; an input that cannot be read, no remaining term, no space. No file is then half written.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (inputs, selection) = (args.inputs.find()?, args.selection.selection()?);
    let Some(files) = args.files.outputs() else { refuse!("give --npz or --parquet") };
    files.refuse_used(&args.index.file, &inputs)?;
    let corpus: Corpus = args.index.open_to_read()?;
    let model = fit(&corpus, selection, args.weighting)?;
    let mut stream = Stream::start(inputs, ("writing", OnInterrupt::Fail), (console, &interrupt))?;
    let shape = write(&model, &files, &mut stream);
    stream.finish();
    let shape = interrupt.check(shape.map_err(explained), "no matrix was made")?;
    drop(model);
    corpus.close().map_err(explained)?;
    let MatrixShape { rows, columns, entries } = shape;
    console.print_peak(&Exported { files, rows, columns, entries }, text)
}

fn write(
    model: &Model<'_>,
    files: &Outputs,
    stream: &mut Stream<'_>,
) -> nandex_tfidf::Result<MatrixShape> {
    let Outputs { matrix, vocabulary, documents, format } = files.clone();
    match format {
        Format::Npz => model.write_npz(stream, &MatrixFiles { matrix, vocabulary, documents }),
        Format::Parquet => model.write_parquet(stream, &ParquetFiles { matrix, vocabulary }),
    }
}

/// Returns whether there is a regular file, or none.
fn is_regular(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |found| found.is_file())
}

fn text(exported: &Exported) -> String {
    let Exported { files, rows, columns, entries } = exported;
    let (rows, columns, entries) = (show_count(*rows), show_count(*columns), show_count(*entries));
    let size = format!("{rows} documents, {columns} terms, {entries} entries");
    let mut lines = vec![("matrix", format!("{}, {size}", files.matrix.display()))];
    let others = [("vocabulary", &files.vocabulary), ("documents", &files.documents)];
    let shown = others.into_iter().filter_map(|(what, path)| Some((what, path.as_ref()?)));
    lines.extend(shown.map(|(what, path)| (what, path.display().to_string())));
    aligned(&lines)
}
