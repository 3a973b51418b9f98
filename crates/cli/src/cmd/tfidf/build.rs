//! `nandex tfidf build`: makes an index of documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use nandex::device::Access;
use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Repeats, StopWords};

use crate::console::Console;
use crate::devices::FileBytes;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size::show_count;
use crate::unfinished::{self, Unfinished};

use super::change::{Change, Changed, RepeatArgs, change};
use super::hints::explained;
use super::index::{self, IndexArgs};
use super::input::InputArgs;

/// The word for scikit-learn's list.
const ENGLISH: &str = "english";

/// The inputs, the index, and how text becomes terms.
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
    /// Go on where an earlier build of this index was stopped, and leave out the documents that it has
    #[arg(long)]
    resume: bool,
}

/// How text becomes terms. An index keeps it.
#[derive(Clone, Debug, clap::Args)]
struct AnalysisArgs {
    /// Words of a term: 1, or 1-3 for terms of one to three words
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
            _ => Err(format!("`{word}` is no range of words; give 1, or 1-3")),
        }
    }
}

impl AnalysisArgs {
    /// The options of the library, checked.
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

/// The words of a file, one in each line.
fn words_of(file: &Path) -> Result<BTreeSet<String>> {
    let cannot = || format!("cannot read the stop words of {}", file.display());
    let text = fs::read_to_string(file).with_context(cannot)?;
    Ok(text.lines().map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

/// Makes the index and adds all documents. The file gets its name when it has all.
///
/// # Errors
/// An existing file, options that cannot work, an input that cannot be read. What was counted before is in a file that
/// is marked unfinished.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let config = args.index.config()?;
    let analysis = args.analysis.analysis(console)?;
    let inputs = args.inputs.find()?;
    let name = args.index.file.as_path();
    unfinished::refuse_existing(&[name])?;
    let mut made = Unfinished::default();
    let left = if args.resume { made.resume(name) } else { None };
    let (place, corpus, way) = match left {
        Some(place) => {
            let corpus = resume(&place, (&analysis, config), console)?;
            (place, corpus, Change::Add(Repeats::Skip))
        }
        None => {
            let place = made.begin(name, console)?;
            let corpus = Corpus::create(&place, &analysis, config).map_err(explained);
            let cannot = || format!("cannot create {}", name.display());
            let corpus = corpus.with_context(cannot).inspect_err(|_| made.remove())?;
            (place, corpus, args.repeats.into())
        }
    };
    let changed = change(corpus, (&place, config), (inputs, way), (console, &interrupt))?;
    finish(changed, (name, made), console)
}

/// Opens what a build that was stopped has left, and says what it has.
fn resume(
    place: &Path,
    (analysis, config): (&Analysis, CorpusConfig),
    console: &Console,
) -> Result<Corpus> {
    let corpus = index::open(place, Access::ReadWrite, config)?;
    let shown = place.display();
    if corpus.analysis() != analysis {
        let text = |it: &Analysis| serde_json::to_string(it).unwrap_or_default();
        bail!(
            "--resume: {shown} was begun with other options of terms: expected {}, found {}; give those, or omit \
             --resume, which begins again",
            text(analysis),
            text(corpus.analysis())
        );
    }
    let documents = show_count(corpus.documents());
    console.note(&format!("{shown} is resumed: it has {documents} documents"));
    Ok(corpus)
}

/// Gives the index its name, unless it was stopped.
fn finish(
    mut changed: Changed,
    (name, mut made): (&Path, Unfinished),
    console: &Console,
) -> Result<()> {
    let place = changed.path.clone();
    if changed.interrupted {
        console.note(&format!(
            "stopped; {} has what was read: the same command with --resume adds the rest",
            place.display()
        ));
    } else {
        made.publish()?;
        changed.path = name.to_owned();
    }
    changed.files = Some(FileBytes::of([changed.path.as_path()])?);
    console.print(&changed, Changed::text)?;
    if changed.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
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
