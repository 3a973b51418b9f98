//! A corpus of the user: its tokens in their order.
//!
//! The paper says of its tokens only that they are keywords. Here a token is a run of Unicode letters and
//! digits, in lower case; invalid UTF-8 ends one. Files of a folder are read in the order of their paths, so
//! the same folder gives the same tokens. A table needs a token's hash only, so only the hash is kept.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use nandex::raw::store::hash::{HashKind, KeyHasher};

use super::shape::DataSet;
use crate::{Error, Result};

/// The maximum number of tokens: with their hashes in RAM, 2 GiB.
const TOKENS_MAX: usize = 1 << 28;
/// The bytes after which a line, and a token in it, is cut.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// The number of first bytes of a file that are checked: a file with a zero byte among them is no text.
const LOOKED_AT_BYTES: usize = 8192;

/// The tokens of a corpus.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    path: PathBuf,
    files: u64,
    not_text: u64,
    bytes: u64,
    distinct: u64,
    pub(super) tokens: Vec<u64>,
}

impl Corpus {
    /// Reads a file, or all files of a folder and of the folders in it. Links within a folder are not
    /// followed, files with zero bytes are skipped. Takes 8 bytes of RAM for each token, and 16 or so for
    /// each different one.
    ///
    /// # Errors
    /// Fails with [`Error::Corpus`] for a path that cannot be read, a corpus without tokens, and one with
    /// more than 2^28.
    pub fn read(path: &Path) -> Result<Self> {
        let mut this = Self { path: path.to_owned(), ..Self::default() };
        let refuse = |path: &Path, reason: String| Error::Corpus { path: path.to_owned(), reason };
        for file in files_of(path).map_err(|(path, e)| refuse(&path, e.to_string()))? {
            this.read_file(&file).map_err(|e| refuse(&file, e.to_string()))?;
        }
        this.distinct = this.tokens.iter().collect::<HashSet<_>>().len() as u64;
        if this.tokens.is_empty() {
            return Err(refuse(path, "expected words, found none; give a text or a folder".into()));
        }
        Ok(this)
    }

    fn read_file(&mut self, path: &Path) -> io::Result<()> {
        let mut input = BufReader::with_capacity(1 << 18, File::open(path)?);
        let first = input.fill_buf()?;
        if first[..first.len().min(LOOKED_AT_BYTES)].contains(&0) {
            self.not_text += 1;
            return Ok(());
        }
        let (mut line, mut word) = (Vec::new(), String::new());
        loop {
            line.clear();
            let bytes = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            if bytes == 0 {
                self.files += 1;
                return Ok(());
            }
            self.bytes += bytes as u64;
            for_each_word(&line, &mut word, |word| self.tokens.push(hash(word)));
            if self.tokens.len() > TOKENS_MAX {
                let reason =
                    format!("more than {TOKENS_MAX} words with it; give a part of the corpus");
                return Err(io::Error::other(reason));
            }
        }
    }

    /// Returns its description, for a report.
    #[must_use]
    pub fn described(&self) -> String {
        let left_out = match self.not_text {
            0 => String::new(),
            some => format!(" {some} files have zero bytes, are no text, and were left out."),
        };
        format!(
            "The corpus is {}: {} files of {} bytes with {} tokens, {} of them different. A token is a run of letters \
             and digits, in small letters; the paper does not say what its tokens are.{left_out}",
            self.path.display(),
            self.files,
            self.bytes,
            self.tokens.len(),
            self.distinct,
        )
    }

    /// Returns its path's last name.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Returns its sizes, in the shares of the paper's Wiki.
    #[must_use]
    pub(super) fn data_set(&self) -> DataSet {
        let (wiki, tokens) = (DataSet::WIKI, self.tokens.len() as u64);
        let share = wiki.tokens_before_queries as f64 / wiki.tokens as f64;
        DataSet {
            name: "Corpus",
            tokens,
            distinct: self.distinct,
            tokens_before_queries: (tokens as f64 * share) as u64,
            ..wiki
        }
    }
}

/// Returns a token's hash, which no table stores.
fn hash(word: &str) -> u64 {
    const HASHER: KeyHasher = KeyHasher::new(HashKind::Xxh3, 0);
    HASHER.hash(word.as_bytes()).place.clamp(1, u64::MAX - 1)
}

/// Passes the words of a line.
fn for_each_word(line: &[u8], word: &mut String, mut act: impl FnMut(&str)) {
    for chunk in line.utf8_chunks() {
        // A chunk's end ends a word, as a space does.
        for char in chunk.valid().chars().chain([' ']) {
            if char.is_alphanumeric() {
                word.extend(char.to_lowercase());
            } else if !word.is_empty() {
                act(word);
                word.clear();
            }
        }
    }
}

type PathResult<T> = std::result::Result<T, (PathBuf, io::Error)>;

/// Returns all files of a path, in order.
fn files_of(path: &Path) -> PathResult<Vec<PathBuf>> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |e| (path, e)
    };
    if !fs::metadata(path).map_err(failed(path))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut files, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            let kind = entry.file_type().map_err(failed(&entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        for_each_word(line, &mut String::new(), |word| found.push(word.to_owned()));
        found
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_small_letters() {
        assert_eq!(words(b"I can't_do 7, or B42!\n"), ["i", "can", "t", "do", "7", "or", "b42"]);
        assert_eq!(words("Größer\u{ff}\n".as_bytes()), ["größerÿ"]);
        assert_eq!(words(b"AB\xffcd"), ["ab", "cd"]);
        assert_eq!(words(b" \n"), [""; 0]);
    }

    #[test]
    fn a_folder_gives_its_texts_in_the_order_of_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("a")).unwrap();
        for (name, bytes) in
            [("b.txt", &b"three One"[..]), ("a/z.txt", b"one two\none"), ("c.bin", b"one\0")]
        {
            fs::write(path.join(name), bytes).unwrap();
        }
        let corpus = Corpus::read(path).unwrap();
        assert_eq!(corpus.tokens, ["one", "two", "one", "three", "one"].map(hash));
        assert_eq!((corpus.files, corpus.not_text, corpus.bytes), (2, 1, 20));
        assert!(corpus.described().contains("20 bytes with 5 tokens, 3 of them different"));
        assert!(corpus.described().contains("1 files have zero bytes"));
        assert_eq!(Corpus::read(&path.join("b.txt")).unwrap().tokens, ["three", "one"].map(hash));
        // A line is cut, so that one without an end takes no RAM.
        fs::write(path.join("b.txt"), vec![b'x'; LINE_BYTES_MAX as usize + 1]).unwrap();
        assert_eq!(Corpus::read(&path.join("b.txt")).unwrap().tokens.len(), 2);
    }

    #[test]
    fn what_is_no_corpus_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Corpus::read(path).unwrap_err().to_string();
        assert!(refused(folder.path()).contains("expected words, found none"));
        let absent = folder.path().join("absent");
        assert!(refused(&absent).contains(&format!("{}: ", absent.display())));
    }

    #[test]
    fn its_sizes_have_the_papers_shares() {
        let corpus = Corpus { tokens: vec![1; 136_749], distinct: 9773, ..Corpus::default() };
        let set = corpus.data_set();
        assert_eq!((set.tokens, set.tokens_before_queries, set.blocks), (136_749, 34_999, 205));
    }
}
