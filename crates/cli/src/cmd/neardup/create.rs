//! An index that documents are added to: a new one, one that a stopped run has left, or one that is there.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nandex::device::{Access, Striping};
use nandex::signature::{Bands, Scheme};
use nandex::{Volume, VolumeOptions};
use nandex_neardup::{Index, IndexConfig, NearOptions, Shingling, Unit};

use crate::console::Console;
use crate::size::{self, show_count};
use crate::unfinished::Unfinished;

use super::hints::explained;
use super::opened::{self, NearIndexArgs};

/// One device has no stripes.
const STRIPING: Striping = Striping::Extent { pages: 256 };

/// What near-duplicates are. A new index keeps it; for one that is there, what is given must be what it has.
#[derive(Clone, Debug, clap::Args)]
pub struct NearArgs {
    /// Words or characters of a shingle, such as 3w or 5c; 3w if not given
    #[arg(long, value_name = "N")]
    shingle: Option<Shingle>,
    /// Keep capitals apart from small letters
    #[arg(long)]
    case_sensitive: bool,
    /// Keep characters apart that are written in several ways, such as é
    #[arg(long)]
    no_nfc: bool,
    /// From which Jaccard similarity on documents are near-duplicates; 0.8 if not given
    #[arg(long, value_name = "SHARE")]
    threshold: Option<f64>,
    /// Values of a signature; 128 if not given
    #[arg(long, value_name = "N")]
    permutations: Option<u32>,
    /// Bands and values of each, such as 9x13; without it, those that datasketch takes for the threshold
    #[arg(long, value_name = "BxR")]
    bands: Option<BandsArg>,
    /// Whose hashes and permutations; ours if not given
    #[arg(long, value_name = "WHOSE")]
    scheme: Option<SchemeArg>,
    /// Which permutations; 1 if not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Documents with different texts that a new index is for; it refuses more
    #[arg(long, value_name = "N", value_parser = size::parse_count, default_value = "1M")]
    documents: u64,
    /// Go on where an earlier run that made this index was stopped, and leave out the documents that it has
    #[arg(long)]
    resume: bool,
    /// Make the index again on a block device that a run which was stopped has left unfinished
    #[arg(long, conflicts_with = "resume")]
    force: bool,
}

/// A length and a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shingle(usize, Unit);

impl FromStr for Shingle {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let unit = match word.chars().last() {
            Some('w') => Unit::Words,
            Some('c') => Unit::Characters,
            _ => {
                return Err(format!(
                    "`{word}` is no shingle; give 3w for words, or 5c for characters"
                ));
            }
        };
        let length = word[..word.len() - 1].parse();
        length
            .map(|length| Self(length, unit))
            .map_err(|_| format!("`{word}` is no shingle; give 3w for words, or 5c for characters"))
    }
}

/// Bands and rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BandsArg(Bands);

impl FromStr for BandsArg {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let pair = word.split_once('x').map(|(count, rows)| (count.parse(), rows.parse()));
        match pair {
            Some((Ok(count), Ok(rows))) => Ok(Self(Bands { count, rows })),
            _ => Err(format!("`{word}` is no number of bands and rows; give 9x13")),
        }
    }
}

/// Whose hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SchemeArg {
    /// Ours, the fastest
    Fast,
    /// datasketch from 2.0 on
    Datasketch,
    /// datasketch before 2.0, and its scheme `legacy`
    DatasketchLegacy,
    /// rensa's RMinHash
    Rensa,
}

impl From<SchemeArg> for Scheme {
    fn from(word: SchemeArg) -> Self {
        match word {
            SchemeArg::Fast => Self::Fast,
            SchemeArg::Datasketch => Self::DatasketchAffine,
            SchemeArg::DatasketchLegacy => Self::DatasketchLegacy,
            SchemeArg::Rensa => Self::Rensa,
        }
    }
}

impl NearArgs {
    /// The options of a new index, checked.
    fn options(&self) -> Result<NearOptions> {
        let usual = NearOptions::default();
        let Shingle(length, unit) = self.shingle.unwrap_or(Shingle(3, Unit::Words));
        let (nfc, fold_case) = (!self.no_nfc, !self.case_sensitive);
        let options = NearOptions {
            shingling: Shingling { unit, length, nfc, fold_case },
            threshold: self.threshold.unwrap_or(usual.threshold),
            permutations: self.permutations.unwrap_or(usual.permutations),
            bands: self.bands.map(|it| it.0),
            scheme: self.scheme.map_or(usual.scheme, Into::into),
            seed: self.seed.unwrap_or(usual.seed),
        };
        options.family().map_err(explained)?;
        Ok(options)
    }

    /// Is there a choice that an index must agree with?
    fn are_given(&self) -> bool {
        let Self { shingle, threshold, permutations, bands, scheme, seed, .. } = self;
        shingle.is_some()
            || threshold.is_some()
            || permutations.is_some()
            || bands.is_some()
            || scheme.is_some()
            || seed.is_some()
            || self.case_sensitive
            || self.no_nfc
    }
}

/// An index to add to.
pub struct Target {
    /// The index.
    pub index: Index,
    /// Where it is.
    pub place: PathBuf,
    /// Is it the rest of a stopped run, of which some documents are there?
    pub is_resumed: bool,
    /// What gives it its name in the end.
    made: Unfinished,
    name: PathBuf,
}

impl Target {
    /// Opens the index, or makes it where there is none.
    ///
    /// # Errors
    /// A file that is no index, other options than its own, options that cannot work, no space.
    pub fn find(args: &NearIndexArgs, near: &NearArgs, console: &Console) -> Result<Self> {
        let name = args.file.as_path();
        let config = IndexConfig { documents: near.documents, ..args.config()? };
        config.validate().map_err(explained)?;
        let options = near.options()?;
        let is_device = fs::metadata(name).is_ok_and(|it| it.file_type().is_block_device());
        let mut made = Unfinished::default();
        if name.exists() && !(is_device && near.force) {
            let index = args.open()?;
            let target =
                Self { index, place: name.into(), is_resumed: false, made, name: name.into() };
            return target.checked((near, &options));
        }
        if let Some(place) = made.resume(name).filter(|_| near.resume) {
            let index = opened::open(&place, Access::ReadWrite, config)
                .context("--resume: the run was stopped before it had any document; omit it")?;
            let documents = show_count(index.documents());
            console.note(&format!("{} is resumed: it has {documents} documents", place.display()));
            let target = Self { index, place, is_resumed: true, made, name: name.into() };
            return target.checked((near, &options));
        }
        Self::create(name, (&options, config), (near.force, console))
    }

    fn create(
        name: &Path,
        (options, config): (&NearOptions, IndexConfig),
        (force, console): (bool, &Console),
    ) -> Result<Self> {
        let log_bytes = Index::log_bytes(options, config).map_err(explained)?;
        let mut volume = opened::volume(name);
        volume.devices.force = force;
        let devices = volume.create(STRIPING, console)?;
        let volume_options =
            VolumeOptions { log_bytes, completion: devices.completion, ..VolumeOptions::default() };
        let filled = || {
            let volume = Volume::create(Arc::clone(&devices.volume), volume_options)?;
            let index = Index::create_in(&volume, options, config).map_err(explained)?;
            anyhow::Ok((devices.made.clone().of(&volume), index))
        };
        let filled = filled().with_context(|| volume.cannot("create"));
        let (made, index) = filled.inspect_err(|_| devices.made.remove())?;
        let place = made.path_of(name);
        Ok(Self { index, place, is_resumed: false, made, name: name.into() })
    }

    /// Refuses an index that was made with other options than those that were given.
    fn checked(self, (near, options): (&NearArgs, &NearOptions)) -> Result<Self> {
        if near.are_given()
            && let Err(error) = self.index.check_options(options)
        {
            bail!(
                "{}: {error}; options that are left out have their usual values",
                self.place.display()
            );
        }
        Ok(self)
    }
}

/// What is left of a target when its index is closed.
pub struct Closed {
    /// Where the index is.
    pub place: PathBuf,
    made: Unfinished,
    name: PathBuf,
}

impl Target {
    /// The index, and what gives it its name.
    pub fn split(self) -> (Index, Closed) {
        let Self { index, place, made, name, .. } = self;
        (index, Closed { place, made, name })
    }
}

impl Closed {
    /// Gives a new index its name.
    ///
    /// # Errors
    /// A file that has got that name meanwhile.
    pub fn publish(&mut self) -> Result<()> {
        self.made.publish()?;
        self.place = self.name.clone();
        Ok(())
    }

    /// Is the index new, and without its name?
    pub fn is_unnamed(&self) -> bool {
        self.place != self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shingles_and_bands_are_numbers_with_their_marks() {
        assert_eq!("3w".parse(), Ok(Shingle(3, Unit::Words)));
        assert_eq!("12c".parse(), Ok(Shingle(12, Unit::Characters)));
        for word in ["", "3", "w", "3é", "-1w"] {
            assert!(word.parse::<Shingle>().unwrap_err().contains("give 3w"), "{word}");
        }
        assert_eq!("9x13".parse(), Ok(BandsArg(Bands { count: 9, rows: 13 })));
        for word in ["", "9", "x", "9x", "9x13x1"] {
            assert!(word.parse::<BandsArg>().unwrap_err().contains("give 9x13"), "{word}");
        }
    }
}
