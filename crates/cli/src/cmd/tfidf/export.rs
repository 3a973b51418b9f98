//! `nandex tfidf export`: the TF-IDF matrix of documents in files that other programs read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use nandex_tfidf::{MatrixFiles, MatrixShape, Model, ParquetFiles};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::interrupt::Interrupt;
use crate::size::show_count;
use crate::texts::{InputArgs, Inputs, OnInterrupt, Stream};

use super::hints::explained;
use super::index::IndexArgs;
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

/// The files that are written. Those that are there are replaced when the new ones are whole.
#[derive(Clone, Debug, clap::Args)]
struct FileArgs {
    /// Write the matrix for scipy.sparse.load_npz
    #[arg(long, value_name = "FILE", required_unless_present = "parquet")]
    npz: Option<PathBuf>,
    /// Write the matrix in Parquet: a row with id, indices and values for each document
    #[arg(long, value_name = "FILE", conflicts_with = "npz")]
    parquet: Option<PathBuf>,
    /// Where the terms of the columns are written: JSON lines, or Parquet with --parquet; without it next to the
    /// matrix, with .vocabulary in its name
    #[arg(long, value_name = "FILE")]
    vocabulary: Option<PathBuf>,
    /// Where the ids of the rows are written, as JSON lines; without it next to the matrix, with .documents in its name
    #[arg(long, value_name = "FILE", conflicts_with = "parquet")]
    documents: Option<PathBuf>,
}

/// What is written.
#[derive(Clone, Debug, Serialize)]
struct Outputs {
    matrix: PathBuf,
    vocabulary: PathBuf,
    /// None in Parquet, whose matrix has them.
    documents: Option<PathBuf>,
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
    /// The files by their names, or by that of the matrix.
    fn outputs(&self) -> Option<Outputs> {
        let (matrix, ending) = match (&self.npz, &self.parquet) {
            (Some(matrix), _) => (matrix, "jsonl"),
            (None, Some(matrix)) => (matrix, "parquet"),
            // One of them is required.
            (None, None) => return None,
        };
        let next_to = |what: &str| matrix.with_extension(format!("{what}.{ending}"));
        let vocabulary = self.vocabulary.clone().unwrap_or_else(|| next_to("vocabulary"));
        let documents = self.documents.clone().unwrap_or_else(|| next_to("documents"));
        let documents = self.npz.is_some().then_some(documents);
        Some(Outputs { matrix: matrix.clone(), vocabulary, documents })
    }
}

impl Outputs {
    fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.matrix, &self.vocabulary].into_iter().chain(&self.documents).map(PathBuf::as_path)
    }

    /// Refuses to write a file over one that is read, or over another one that is written.
    fn refuse_used(&self, index: &Path, inputs: &Inputs) -> Result<()> {
        let place = |path: &Path| fs::canonicalize(path).or_else(|_| std::path::absolute(path));
        let mut used = vec![place(index)?];
        for path in inputs.paths() {
            used.push(place(path)?);
        }
        for path in self.all() {
            let place = place(path)?;
            if used.contains(&place) {
                let shown = path.display();
                bail!(
                    "cannot write {shown}: this command reads it, or writes it twice; name another file"
                );
            }
            used.push(place);
        }
        Ok(())
    }
}

/// Writes the matrix, and what belongs to it.
///
/// # Errors
/// As for opening; an input that cannot be read, no term that is left, no space. No file is then half written.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (inputs, selection) = (args.inputs.find()?, args.selection.selection()?);
    let Some(files) = args.files.outputs() else { bail!("give --npz or --parquet") };
    files.refuse_used(&args.index.file, &inputs)?;
    let corpus = args.index.open_to_read()?;
    let model = fit(&corpus, selection, args.weighting)?;
    let mut stream = Stream::start(inputs, ("writing", OnInterrupt::Fail), (console, &interrupt))?;
    let shape = write(&model, &files, &mut stream);
    stream.finish();
    let shape = interrupt.check(shape.map_err(explained), "no matrix was made")?;
    drop(model);
    corpus.close().map_err(explained)?;
    let MatrixShape { rows, columns, entries } = shape;
    console.print(&Exported { files, rows, columns, entries }, text)
}

fn write(
    model: &Model<'_>,
    files: &Outputs,
    stream: &mut Stream<'_>,
) -> nandex_tfidf::Result<MatrixShape> {
    let (matrix, vocabulary) = (files.matrix.clone(), Some(files.vocabulary.clone()));
    match files.documents.clone() {
        Some(documents) => {
            let files = MatrixFiles { matrix, vocabulary, documents: Some(documents) };
            model.write_npz(stream, &files)
        }
        None => model.write_parquet(stream, &ParquetFiles { matrix, vocabulary }),
    }
}

fn text(exported: &Exported) -> String {
    let Exported { files, rows, columns, entries } = exported;
    let (rows, columns, entries) = (show_count(*rows), show_count(*columns), show_count(*entries));
    let size = format!("{rows} documents, {columns} terms, {entries} entries");
    let mut lines = vec![
        ("matrix", format!("{}, {size}", files.matrix.display())),
        ("vocabulary", files.vocabulary.display().to_string()),
    ];
    lines.extend(files.documents.as_ref().map(|path| ("documents", path.display().to_string())));
    aligned(&lines)
}
