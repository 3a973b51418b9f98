//! The inputs, each made once for all cases and the same in every run.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::measure::Scale;

/// An input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// `keys.txt`: different lines.
    Keys,
    /// `records.csv`: keys and values that are numbers.
    Records,
    /// `stream`: bytes that do not compress, half of which have come before.
    Stream,
    /// `docs.jsonl`: documents of 70 KB.
    Documents,
    /// `folder`: files of 20 KB.
    Folder,
    /// `long.jsonl`: some short documents, and one of 12.7 MB.
    Document,
    /// `tree`: files that do not compress, of 8 MB.
    Tree,
}

/// The inputs that this process has made.
static MADE: Mutex<Vec<(Input, Scale)>> = Mutex::new(Vec::new());

/// Returns the folder of the inputs of a scale.
fn folder(scale: Scale) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ram-{scale:?}"))
}

/// Removes all inputs of a scale.
pub fn remove_all(scale: Scale) -> io::Result<()> {
    fs::remove_dir_all(folder(scale))
}

impl Input {
    /// Puts a link to the input into a folder.
    pub fn link_into(self, folder: &Path, scale: Scale) {
        let made = self.make(scale);
        let link = folder.join(made.file_name().expect("an input has a name"));
        std::os::unix::fs::symlink(made, link).expect("the folder is writable");
    }

    /// Returns the path of the input, made if this is the first use.
    fn make(self, scale: Scale) -> PathBuf {
        let folder = folder(scale);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = folder.join(self.name());
        if !made.contains(&(self, scale)) {
            fs::create_dir_all(&folder).expect("the folder is writable");
            // An earlier process may have left one.
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
            self.write(&path, scale).expect("the input can be written");
            made.push((self, scale));
        }
        path
    }

    fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys.txt",
            Self::Records => "records.csv",
            Self::Stream => "stream",
            Self::Documents => "docs.jsonl",
            Self::Folder => "folder",
            Self::Document => "long.jsonl",
            Self::Tree => "tree",
        }
    }

    fn write(self, path: &Path, scale: Scale) -> io::Result<()> {
        match self {
            Self::Keys => {
                let mut out = BufWriter::new(File::create(path)?);
                (0..scale.keys()).try_for_each(|number| writeln!(out, "key {number}"))
            }
            Self::Records => {
                let mut out = BufWriter::new(File::create(path)?);
                (0..scale.keys()).try_for_each(|number| writeln!(out, "{},{number}", mix(number)))
            }
            Self::Stream => write_stream(path, scale.bytes()),
            Self::Documents => write_documents(path, scale.bytes() / 70_000, 70_000),
            Self::Folder => write_folder(path, scale.bytes() / 20_000, 20_000),
            Self::Document => write_long(path),
            Self::Tree => {
                fs::create_dir(path)?;
                (0..scale.bytes() / 8_000_000).try_for_each(|number| {
                    fs::write(path.join(number.to_string()), noise(number << 32, 8_000_000))
                })
            }
        }
    }
}

/// Writes blocks of a megabyte, of which every second is an earlier one.
fn write_stream(path: &Path, bytes: u64) -> io::Result<()> {
    let mut out = File::create(path)?;
    (0..bytes >> 20).try_for_each(|block| {
        let seed = if block % 2 == 0 { block } else { (mix(block) % block) & !1 };
        out.write_all(&noise(seed << 32, 1 << 20))
    })
}

fn write_documents(path: &Path, count: u64, bytes: usize) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    (0..count).try_for_each(|number| writeln!(out, r#"{{"text": "{}"}}"#, text(number, bytes)))
}

fn write_folder(path: &Path, count: u64, bytes: usize) -> io::Result<()> {
    fs::create_dir(path)?;
    (0..count)
        .try_for_each(|number| fs::write(path.join(format!("{number}.txt")), text(number, bytes)))
}

fn write_long(path: &Path) -> io::Result<()> {
    write_documents(path, 50, 2000)?;
    let mut out = BufWriter::new(fs::OpenOptions::new().append(true).open(path)?);
    writeln!(out, r#"{{"text": "{}"}}"#, text(99, 12_700_000))
}

/// Returns text whose words are the rarer the larger their number: one in about 60 is new.
fn text(seed: u64, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 20);
    let mut number = seed << 32;
    while text.len() < bytes {
        number += 1;
        let random = mix(number);
        let word = (random >> 32) % (1 << (random % 24));
        text.push_str(&format!("w{word:x} "));
    }
    text
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64 / 8).flat_map(|word| mix(seed + word).to_le_bytes()).collect()
}

/// Mixes a number by a bijection that spreads numbers.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
