//! The documents of a verb: files and folders by their formats, and the ids of their documents.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use nandex_corpus::documents::{
    Content, Decoding, Documents, Fields, JsonLines, Lines, Reading, Source,
};
use nandex_corpus::{Document, DocumentResult, Error};
use serde_json::{Value, json};

use crate::refuse;
use crate::size;

use super::broken::LeftOut;

/// The field with a document's vector, by default.
const VECTOR: &str = "vector";

/// The name of stdin.
const STDIN: &str = "-";

/// The inputs, and their formats.
#[derive(Clone, Debug, clap::Args)]
pub struct InputArgs {
    /// Folders, text files, JSON lines, Parquet files, or `-` for stdin
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
}

/// The way in which inputs are read.
#[derive(Clone, Debug, clap::Args)]
struct ReadingArgs {
    /// Format of all inputs; default: by their extensions: folders, .jsonl, .ndjson, .parquet, and lines otherwise
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Field or column with a document's id; default: ids are numbers
    #[arg(long, value_name = "FIELD")]
    id: Option<String>,
    /// Field or column with a document's text or vector; default: `text` or `vector`
    #[arg(long, value_name = "FIELD")]
    text: Option<String>,
    /// Prefix of ids in place of the input's name, such as for stdin
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    name: Option<String>,
    /// Handling of bytes that are not UTF-8
    #[arg(long, value_name = "HOW", default_value = "strict")]
    decoding: DecodingArg,
    /// Longest document; for an index, at most an eighth of --ram
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "64MiB")]
    document_bytes: u64,
}

/// The format of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Each file in it, and in folders in it, is a document
    Folder,
    /// Each line is a document
    Lines,
    /// Each line is a JSON object, one field of which is the text
    Jsonl,
    /// Each row is a document, one column of which is the text
    Parquet,
}

/// The handling of bytes that are not UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DecodingArg {
    /// Fail
    Strict,
    /// Replace them by U+FFFD, which ends a word
    Replace,
    /// Leave them out
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
    /// Whether the field of the texts was named.
    is_field_named: bool,
    /// The size of the inputs in bytes, if the texts are about as long.
    pub bytes: Option<u64>,
    /// The record of broken documents that are left out; if `None`, they are errors.
    left_out: Option<LeftOut>,
}

/// One input.
#[derive(Clone, Debug)]
struct Input {
    path: PathBuf,
    format: Format,
    fields: Fields,
    /// The prefix of ids; `None` if the documents have ids of their own.
    prefix: Option<String>,
}

/// Like [`InputArgs`], but inputs are optional.
#[derive(Clone, Debug, clap::Args)]
pub struct OptionalInputArgs {
    /// Folders, text files, JSON lines, Parquet files, or `-` for stdin
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
}

impl InputArgs {
    /// Checks all inputs before anything is created.
    ///
    /// # Errors
    /// An input that is missing, is named twice, or is not what `--format` says; a field's name without fields.
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

/// The part of the RAM of an index that a document may be: its text is read, decoded and passed on.
const DOCUMENTS_EACH: u64 = 8;

impl Inputs {
    /// Limits the documents to a part of the RAM of an index.
    pub fn within(mut self, ram_bytes: u64) -> Self {
        let most = usize::try_from(ram_bytes / DOCUMENTS_EACH).unwrap_or(usize::MAX);
        self.reading.document_bytes_max = self.reading.document_bytes_max.min(most);
        self
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
                refuse!("{} is named twice; name each input once", path.display());
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
            refuse!(
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
                _ => {
                    refuse!("stdin has lines or JSON lines; give --format lines or --format jsonl")
                }
            };
        }
        let found = fs::metadata(path).with_context(|| format!("cannot open {shown}"))?;
        match (found.is_dir(), self.format) {
            (true, None | Some(Format::Folder)) => Ok(Format::Folder),
            (true, Some(_)) => {
                refuse!("{shown} is a folder; omit --format, or name the files in it")
            }
            (false, Some(Format::Folder)) => refuse!("{shown} is not a folder; omit --format"),
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

/// Returns an input's path as it is in ids: without `.` components, and without a slash at its end.
fn named(path: &Path) -> String {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().display().to_string()
}

/// Returns the canonical path; stdin is unchanged.
fn place(path: &Path) -> Result<PathBuf> {
    if path == Path::new(STDIN) {
        return Ok(path.into());
    }
    fs::canonicalize(path).with_context(|| format!("cannot open {}", path.display()))
}

impl Inputs {
    /// Returns the inputs' paths, without stdin.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().map(|input| input.path.as_path()).filter(|path| *path != Path::new(STDIN))
    }

    /// Returns the same inputs, with broken documents left out and noted. In Parquet they stay errors, since nothing
    /// after them can be read.
    #[must_use]
    pub fn leaving_out(self, left_out: &LeftOut) -> Self {
        Self { left_out: Some(left_out.clone()), ..self }
    }

    /// Returns the same documents as texts or as vectors; vectors are in the field `vector` unless another was named.
    #[must_use]
    pub fn holding(mut self, content: Content) -> Self {
        self.reading.content = content;
        if let (Content::Vector { .. }, false) = (content, self.is_field_named) {
            self.all.iter_mut().for_each(|input| input.fields.text = VECTOR.into());
        }
        self
    }

    /// Returns whether no inputs were named.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns, as JSON, what determines the documents and their ids.
    pub fn names(&self) -> String {
        let name = |input: &Input| {
            let (path, format) = (named(&input.path), format!("{:?}", input.format));
            json!([path, format, input.fields.id, input.fields.text, input.prefix])
        };
        self.all.iter().map(name).collect::<Value>().to_string()
    }

    /// Returns all documents, one input after another.
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
    /// Returns its length, if the texts are about as long.
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

    /// Returns a document with its id in this run, or its error with its place.
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

/// Adds the folder to an error of one of its documents.
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
