//! The documents of a verb: files and folders by their kinds, and what their documents are called.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nandex_corpus::documents::{
    Content, Decoding, Documents, Fields, JsonLines, Lines, Reading, Source,
};
use nandex_corpus::{Document, DocumentResult, Error};
use serde_json::{Value, json};

use crate::size;

use super::broken::LeftOut;

/// The field with a document's vector, if none is named.
const VECTOR: &str = "vector";

/// The name of stdin.
const STDIN: &str = "-";

/// The inputs, and how they are read.
#[derive(Clone, Debug, clap::Args)]
pub struct InputArgs {
    /// Folders, text files, JSON lines, Parquet files, or `-` for stdin
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
}

/// How inputs are read.
#[derive(Clone, Debug, clap::Args)]
struct ReadingArgs {
    /// What all inputs are; without it by their extensions: folders, .jsonl, .ndjson, .parquet, and lines otherwise
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The field or column with a document's id; without it ids are numbers
    #[arg(long, value_name = "FIELD")]
    id: Option<String>,
    /// The field or column with a document's text or vector; `text` or `vector` if not given
    #[arg(long, value_name = "FIELD")]
    text: Option<String>,
    /// What ids begin with in place of the input's name, such as for stdin
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    name: Option<String>,
    /// What happens to bytes that are no UTF-8
    #[arg(long, value_name = "HOW", default_value = "strict")]
    decoding: DecodingArg,
    /// The longest document
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "64MiB")]
    document_bytes: u64,
}

/// What an input is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Each file in it, and in folders in it, is a document
    Folder,
    /// Each line is a document
    Lines,
    /// Each line is a JSON object, of which one field is the text
    Jsonl,
    /// Each row is a document, of which one column is the text
    Parquet,
}

/// What happens to bytes that are no UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DecodingArg {
    /// They are an error
    Strict,
    /// They become U+FFFD, which ends a word
    Replace,
    /// They are left out
    Ignore,
}

impl From<DecodingArg> for Decoding {
    fn from(word: DecodingArg) -> Self {
        match word {
            DecodingArg::Strict => Self::Strict,
            DecodingArg::Replace => Self::Replace,
            DecodingArg::Ignore => Self::Ignore,
        }
    }
}

/// Inputs that were found, and how they are read.
#[derive(Clone, Debug)]
pub struct Inputs {
    all: Vec<Input>,
    reading: Reading,
    /// Was the field of the texts named?
    is_field_named: bool,
    /// Bytes of the inputs, where the texts are about as long.
    pub bytes: Option<u64>,
    /// Where broken documents are noted that are left out; without it they are errors.
    left_out: Option<LeftOut>,
}

/// One input.
#[derive(Clone, Debug)]
struct Input {
    path: PathBuf,
    format: Format,
    fields: Fields,
    /// What ids begin with; nothing where the documents have their own.
    prefix: Option<String>,
}

/// As [`InputArgs`], where none need be named.
#[derive(Clone, Debug, clap::Args)]
pub struct OptionalInputArgs {
    /// Folders, text files, JSON lines, Parquet files, or `-` for stdin
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
}

impl InputArgs {
    /// Looks at all inputs before anything is made.
    ///
    /// # Errors
    /// An input that is not there, is named twice, or is not what `--format` says; a field's name without fields.
    pub fn find(&self) -> Result<Inputs> {
        self.reading.find(&self.inputs)
    }
}

impl OptionalInputArgs {
    /// As [`InputArgs::find`].
    ///
    /// # Errors
    /// As [`InputArgs::find`].
    pub fn find(&self) -> Result<Inputs> {
        self.reading.find(&self.inputs)
    }
}

impl ReadingArgs {
    fn find(&self, inputs: &[PathBuf]) -> Result<Inputs> {
        let reading = Reading {
            decoding: self.decoding.into(),
            document_bytes_max: usize::try_from(self.document_bytes)?,
            content: Content::Text,
        };
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        for path in inputs {
            if !seen.insert(place(path)?) {
                bail!("{} is named twice; name each input once", path.display());
            }
            all.push(self.input(path)?);
        }
        let bytes = all.iter().map(Input::bytes).sum();
        let is_field_named = self.text.is_some();
        Ok(Inputs { all, reading, is_field_named, bytes, left_out: None })
    }

    fn input(&self, path: &Path) -> Result<Input> {
        let shown = path.display();
        let format = self.format_of(path)?;
        if let (Format::Folder | Format::Lines, Some(field)) =
            (format, self.id.as_ref().or(self.text.as_ref()))
        {
            bail!(
                "{shown} has no field {field:?}: --id and --text are for JSON lines and Parquet; leave them out, or say \
                 --format"
            );
        }
        let usual = Fields::default();
        let text = self.text.clone().unwrap_or(usual.text);
        let own = self.id.is_none().then(|| self.name.clone().unwrap_or_else(|| named(path)));
        Ok(Input {
            path: path.into(),
            format,
            fields: Fields { text, id: self.id.clone() },
            prefix: own,
        })
    }

    fn format_of(&self, path: &Path) -> Result<Format> {
        let shown = path.display();
        if path == Path::new(STDIN) {
            return match self.format.unwrap_or(Format::Lines) {
                format @ (Format::Lines | Format::Jsonl) => Ok(format),
                _ => bail!("stdin has lines or JSON lines; give --format lines or --format jsonl"),
            };
        }
        let found = fs::metadata(path).with_context(|| format!("cannot open {shown}"))?;
        match (found.is_dir(), self.format) {
            (true, None | Some(Format::Folder)) => Ok(Format::Folder),
            (true, Some(_)) => {
                bail!("{shown} is a folder; leave --format out, or name the files in it")
            }
            (false, Some(Format::Folder)) => bail!("{shown} is no folder; leave --format out"),
            (false, Some(format)) => Ok(format),
            (false, None) => Ok(by_extension(path)),
        }
    }
}

fn by_extension(path: &Path) -> Format {
    let extension = path.extension().map(|it| it.to_ascii_lowercase());
    match extension.as_ref().and_then(|it| it.to_str()) {
        Some("jsonl" | "ndjson") => Format::Jsonl,
        Some("parquet") => Format::Parquet,
        _ => Format::Lines,
    }
}

/// An input's path as ids have it: without `.` in it, and without a slash at its end.
fn named(path: &Path) -> String {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().display().to_string()
}

/// Where a path leads; stdin is where it is.
fn place(path: &Path) -> Result<PathBuf> {
    if path == Path::new(STDIN) {
        return Ok(path.into());
    }
    fs::canonicalize(path).with_context(|| format!("cannot open {}", path.display()))
}

impl Inputs {
    /// The inputs' paths, without stdin.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().map(|input| input.path.as_path()).filter(|path| *path != Path::new(STDIN))
    }

    /// The same, where broken documents are left out and noted. In Parquet they stay errors, since nothing can be read
    /// behind them.
    #[must_use]
    pub fn leaving_out(self, left_out: &LeftOut) -> Self {
        Self { left_out: Some(left_out.clone()), ..self }
    }

    /// The same documents as texts or as vectors; these are in the field `vector` unless another was named.
    #[must_use]
    pub fn holding(mut self, content: Content) -> Self {
        self.reading.content = content;
        if let (Content::Vector { .. }, false) = (content, self.is_field_named) {
            self.all.iter_mut().for_each(|input| input.fields.text = VECTOR.into());
        }
        self
    }

    /// Were none named?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What decides which documents these are and what they are called, as JSON.
    pub fn names(&self) -> String {
        let name = |input: &Input| {
            let (path, format) = (named(&input.path), format!("{:?}", input.format));
            json!([path, format, input.fields.id, input.fields.text, input.prefix])
        };
        self.all.iter().map(name).collect::<Value>().to_string()
    }

    /// All documents, one input after another.
    pub fn documents(self) -> impl Iterator<Item = DocumentResult> {
        let (reading, left_out) = (self.reading, self.left_out);
        self.all.into_iter().flat_map(move |input| -> Documents<'static> {
            let left_out = left_out.clone().filter(|_| input.format != Format::Parquet);
            match input.documents(reading) {
                Ok(documents) => Box::new(documents.filter_map(move |document| {
                    match (input.renamed(document), &left_out) {
                        (Err(error), Some(left_out)) => left_out.note(error).map(Err),
                        (document, _) => Some(document),
                    }
                })),
                Err(error) => Box::new(std::iter::once(Err(error))),
            }
        })
    }
}

impl Input {
    /// Its length, where the texts are as long.
    fn bytes(&self) -> Option<u64> {
        let found = fs::metadata(&self.path).ok()?;
        (self.format == Format::Lines && found.is_file()).then_some(found.len())
    }

    fn documents(&self, reading: Reading) -> nandex_corpus::Result<Documents<'static>> {
        let (path, fields) = (self.path.clone(), self.fields.clone());
        if self.path == Path::new(STDIN) {
            let stdin = io::BufReader::new(io::stdin());
            return Ok(match self.format {
                Format::Jsonl => Box::new(JsonLines::new(stdin, "stdin", fields, reading)),
                _ => Box::new(Lines::new(stdin, "stdin", reading)),
            });
        }
        let source = match self.format {
            Format::Folder => Source::Folder(path),
            Format::Lines => Source::Lines(path),
            Format::Jsonl => Source::JsonLines { path, fields },
            Format::Parquet => Source::Parquet { path, fields },
        };
        source.documents(reading)
    }

    /// A document with its id in this run, or its error with its place.
    fn renamed(&self, document: DocumentResult) -> DocumentResult {
        let Some(prefix) = &self.prefix else { return document };
        let is_folder = self.format == Format::Folder;
        match document {
            Ok(Document { id, text }) => {
                let between = if is_folder { '/' } else { ':' };
                Ok(Document { id: format!("{prefix}{between}{id}"), text })
            }
            Err(error) if is_folder => Err(within(&self.path, error)),
            Err(error) => Err(error),
        }
    }
}

/// An error of a document of a folder, with the folder.
fn within(folder: &Path, error: Error) -> Error {
    let below = |document: String| folder.join(document).display().to_string();
    match error {
        Error::Utf8 { document, offset, byte } => {
            Error::Utf8 { document: below(document), offset, byte }
        }
        Error::DocumentTooLong { document, bytes_max } => {
            Error::DocumentTooLong { document: below(document), bytes_max }
        }
        Error::Malformed { document, reason } => {
            Error::Malformed { document: below(document), reason }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_by_extension_and_the_name_without_dots_and_slashes() {
        for (path, format) in [
            ("a.jsonl", Format::Jsonl),
            ("a.b.NDJSON", Format::Jsonl),
            ("x/a.parquet", Format::Parquet),
            ("a.txt", Format::Lines),
            ("jsonl", Format::Lines),
        ] {
            assert_eq!(by_extension(Path::new(path)), format, "{path}");
        }
        for path in ["texts", "./texts", "texts/", "./texts/."] {
            assert_eq!(named(Path::new(path)), "texts");
        }
        assert_eq!(named(Path::new("../a/./b")), "../a/b");
    }
}
