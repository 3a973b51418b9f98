//! `nandex tfidf build`: creates an index of documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result};
use nandex::raw::Stated;
use nandex::{Database, VolumeOptions};
use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Repeats, StopWords};

use crate::cmd::document_index::{IndexArgs, ResumeArgs, Target};
use crate::console::Console;
use crate::devices::VolumeArgs;
use crate::held::{STRIPING, create_with};
use crate::interrupt::Interrupt;
use crate::left::Left;
use crate::refuse;
use crate::texts::InputArgs;

use super::change::{Change, RepeatArgs, change};
use super::hints::explained;

/// The word for scikit-learn's list.
const ENGLISH: &str = "english";

/// The inputs, the index, and the analysis of text.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
    #[command(flatten)]
    repeats: RepeatArgs,
    #[command(flatten)]
    resume: ResumeArgs,
}

/// The conversion of text to terms. An index stores it.
#[derive(Clone, Debug, clap::Args)]
struct AnalysisArgs {
    /// Number of words of a term: 1, or 1-3 for terms of one to three words
    #[arg(long, value_name = "N-M", default_value = "1")]
    ngram: Ngram,
    /// Leave these words out: `english`, which is scikit-learn's list, or a file with a word in each line
    #[arg(long, value_name = "english|FILE")]
    stop_words: Option<String>,
    /// Keep capitals
    #[arg(long)]
    no_lowercase: bool,
}

/// The fewest and the most words of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ngram(usize, usize);

impl FromStr for Ngram {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (min, max) = word.split_once('-').unwrap_or((word, word));
        match (min.parse(), max.parse()) {
            (Ok(min), Ok(max)) => Ok(Self(min, max)),
            _ => Err(format!("`{word}` is not a range of words; give 1, or 1-3")),
        }
    }
}

impl AnalysisArgs {
    /// Returns the options of the library, checked.
    fn analysis(&self, console: &Console) -> Result<Analysis> {
        let stop_words = match self.stop_words.as_deref() {
            None => StopWords::None,
            Some(ENGLISH) => StopWords::English,
            Some(file) => StopWords::List(words_of(Path::new(file))?),
        };
        let usual = Analysis::default().ngrams(self.ngram.0, self.ngram.1);
        let analysis = Analysis { lowercase: !self.no_lowercase, stop_words, ..usual };
        analysis.validate().map_err(explained)?;
        if let (StopWords::List(words), true) = (&analysis.stop_words, analysis.lowercase) {
            let capital = words.iter().find(|word| word.to_lowercase() != **word);
            if let Some(word) = capital {
                let why = "text is made lower case before stop words are left out";
                console.note(&format!("--stop-words: {word:?} is in no text: {why}"));
            }
        }
        Ok(analysis)
    }
}

/// Returns the words of a file, one per line.
fn words_of(file: &Path) -> Result<BTreeSet<String>> {
    let cannot = || format!("cannot read the stop words of {}", file.display());
    let text = fs::read_to_string(file).with_context(cannot)?;
    Ok(text.lines().map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

/// Creates the index and adds all documents. A file gets its name when it has all of them; a block device is marked
/// until then.
///
/// # Errors
/// An existing file, a device with content, invalid options, an input that cannot be read. The documents counted before
/// are in a file or on a device that is marked unfinished.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (ram_bytes, stated) = (args.index.ram, args.index.stated());
    let config = CorpusConfig { ram_bytes };
    config.validate().map_err(explained)?;
    let analysis = args.analysis.analysis(console)?;
    let inputs = args.inputs.find()?;
    let name = args.index.file.as_path();
    let left = if args.resume.resume { Left::find(args.index.place())? } else { None };
    let (target, way) = match left {
        Some(left) => {
            let target = Target::resumed(left, name, (ram_bytes, &stated))?;
            refuse_other(&target, &analysis)?;
            target.tell_resumed(console);
            (target, Change::Add(Repeats::Skip))
        }
        None => {
            let volume = args.resume.volume(args.index.place());
            let made = create(&volume, (&analysis, &stated), config, console)?;
            (Target::made(made, name), args.repeats.into())
        }
    };
    change(target, (args.index.engine, ram_bytes), (inputs, way), (console, &interrupt))
}

/// Creates an empty index.
fn create(
    args: &VolumeArgs,
    options: (&Analysis, &Stated),
    config: CorpusConfig,
    console: &Console,
) -> Result<(Database, Corpus)> {
    let volume = VolumeOptions::default().with_growing_log(config.log_bytes());
    let make = |volume: &_| Corpus::create_stated(volume, options, config).map_err(explained);
    create_with(args, (STRIPING, volume), console, make)
}

/// Fails if the resumed index has other terms.
fn refuse_other(target: &Target<Corpus>, analysis: &Analysis) -> Result<()> {
    let found = target.index.analysis();
    if found == analysis {
        return Ok(());
    }
    let text = |it: &Analysis| serde_json::to_string(it).unwrap_or_default();
    refuse!(
        "--resume: {} was begun with other options of terms: expected {}, found {}; give those, or omit --resume, which \
         begins again",
        target.file.place.display(),
        text(analysis),
        text(found)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_words_is_one_number_or_two() {
        assert_eq!("2".parse(), Ok(Ngram(2, 2)));
        assert_eq!("1-3".parse(), Ok(Ngram(1, 3)));
        for word in ["", "-", "1-", "-2", "1-2-3", "one"] {
            assert!(word.parse::<Ngram>().unwrap_err().contains("give 1, or 1-3"), "{word}");
        }
    }
}
