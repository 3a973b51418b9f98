//! The definition of near-duplicates, by the words of the command line.

use std::str::FromStr;

use anyhow::Result;
use clap::ValueEnum;
use nandex::raw::signature::{Bands, Family, Scheme, SimHashBits};
use nandex_neardup::{
    Hashing, Index, MinHashing, NearOptions, Shingling, SimHashing, Unit, VectorHashing,
};

use crate::refuse;
use crate::size;

use super::hints::explained;

/// The definition of near-duplicates. A new index stores it; for an existing one, the given options must match.
#[derive(Clone, Debug, clap::Args)]
pub struct NearArgs {
    /// Family of hashes; default: minhash
    #[arg(long, value_name = "FAMILY")]
    family: Option<FamilyArg>,
    /// Words or characters of a shingle, such as 3w or 5c; default: 3w
    #[arg(long, value_name = "N")]
    shingle: Option<Shingle>,
    /// Distinguish capitals from small letters
    #[arg(long)]
    case_sensitive: bool,
    /// Distinguish characters that can be encoded in several ways, such as é
    #[arg(long)]
    no_nfc: bool,
    /// minhash: Jaccard similarity from which on documents are near-duplicates; default: 0.8
    #[arg(long, value_name = "SHARE", value_parser = size::parse_similarity)]
    threshold: Option<f64>,
    /// minhash: number of values of a signature; default: 128
    #[arg(long, value_name = "N")]
    permutations: Option<u32>,
    /// minhash: bands and values of each, such as 9x13; default: those that datasketch chooses for the threshold
    #[arg(long, value_name = "BxR")]
    bands: Option<BandsArg>,
    /// minhash: origin of hashes and permutations; default: our own
    #[arg(long, value_name = "ORIGIN")]
    scheme: Option<SchemeArg>,
    /// simhash: bits of a signature, 64 or 128; default: 64
    #[arg(long, value_name = "N")]
    bits: Option<u32>,
    /// Distance up to which documents are near-duplicates. simhash: number of differing bits; default: 3. p-stable: a
    /// Euclidean distance
    #[arg(long, value_name = "N", value_parser = size::parse_distance)]
    distance: Option<f64>,
    /// p-stable: numbers of a vector
    #[arg(long, value_name = "N")]
    dimensions: Option<u32>,
    /// p-stable: number of tables; default: 10
    #[arg(long, value_name = "N")]
    tables: Option<u32>,
    /// p-stable: number of lines of each table on which a vector has a place; default: 8
    #[arg(long, value_name = "N")]
    projections: Option<u32>,
    /// p-stable: width of a cell of a line; default: four times the distance
    #[arg(long, value_name = "N", value_parser = size::parse_width)]
    width: Option<f32>,
    /// p-stable: number of cells next to a vector's own that a lookup tries in each table, the nearest first; default:
    /// 8
    #[arg(long, value_name = "N")]
    probes: Option<u32>,
    /// minhash and p-stable: seed of permutations or lines; default: 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// A family by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum FamilyArg {
    /// Texts, by the Jaccard similarity of their shingles
    Minhash,
    /// Texts, by the differing bits of the signatures of their shingles
    Simhash,
    /// Vectors, by their Euclidean distance
    PStable,
}

impl FamilyArg {
    const fn of(family: &Family) -> Self {
        match family {
            Family::MinHash { .. } => Self::Minhash,
            Family::SimHash { .. } => Self::Simhash,
            Family::PStable { .. } => Self::PStable,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Minhash => "minhash",
            Self::Simhash => "simhash",
            Self::PStable => "p-stable",
        }
    }
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
                    "`{word}` is not a shingle; give 3w for words, or 5c for characters"
                ));
            }
        };
        let length = word[..word.len() - 1].parse();
        length.map(|length| Self(length, unit)).map_err(|_| {
            format!("`{word}` is not a shingle; give 3w for words, or 5c for characters")
        })
    }
}

/// A number of bands and of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BandsArg(Bands);

impl FromStr for BandsArg {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let pair = word.split_once('x').map(|(count, rows)| (count.parse(), rows.parse()));
        match pair {
            Some((Ok(count), Ok(rows))) => Ok(Self(Bands { count, rows })),
            _ => Err(format!("`{word}` is not a number of bands and rows; give 9x13")),
        }
    }
}

/// The origin of the hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SchemeArg {
    /// Our own, the fastest
    Fast,
    /// datasketch from 2.0 on
    Datasketch,
    /// datasketch before 2.0, and its scheme `legacy`
    DatasketchLegacy,
    /// rensa's RMinHash up to 0.4
    Rensa,
    /// rensa's RMinHash from 0.5 on
    #[value(name = "rensa-0.5")]
    RensaBuckets,
}

impl From<SchemeArg> for Scheme {
    fn from(word: SchemeArg) -> Self {
        match word {
            SchemeArg::Fast => Self::Fast,
            SchemeArg::Datasketch => Self::DatasketchAffine,
            SchemeArg::DatasketchLegacy => Self::DatasketchLegacy,
            SchemeArg::Rensa => Self::Rensa,
            SchemeArg::RensaBuckets => Self::RensaBuckets,
        }
    }
}

impl NearArgs {
    /// Returns the options of a new index, checked.
    ///
    /// # Errors
    /// Options of another family, or invalid ones.
    pub fn options(&self) -> Result<NearOptions> {
        self.options_of(self.family.unwrap_or(FamilyArg::Minhash), self.dimensions)
    }

    /// Fails if an index was created with other options than the given ones.
    ///
    /// # Errors
    /// Another family, other options, invalid options.
    pub fn check(&self, index: &Index) -> Result<()> {
        let found = FamilyArg::of(index.family());
        if let Some(asked) = self.family.filter(|asked| *asked != found) {
            refuse!(
                "this is an index of the family {}, and --family asks for {}; leave it out, or make another index",
                found.word(),
                asked.word()
            );
        }
        if !self.are_given() {
            return Ok(());
        }
        let own_dimensions = match index.family() {
            Family::PStable { dimensions, .. } => Some(*dimensions),
            _ => None,
        };
        let options = self.options_of(found, self.dimensions.or(own_dimensions))?;
        if let Err(error) = index.check_options(&options) {
            refuse!("{error}; options that are left out have their usual values");
        }
        Ok(())
    }

    fn options_of(&self, family: FamilyArg, dimensions: Option<u32>) -> Result<NearOptions> {
        self.refuse_foreign(family)?;
        let Shingle(length, unit) = self.shingle.unwrap_or(Shingle(3, Unit::Words));
        let (nfc, fold_case) = (!self.no_nfc, !self.case_sensitive);
        let shingling = Shingling { unit, length, nfc, fold_case };
        let hashing = match family {
            FamilyArg::Minhash => Hashing::MinHash(self.minhashing()),
            FamilyArg::Simhash => Hashing::SimHash(self.simhashing()?),
            FamilyArg::PStable => Hashing::PStable(self.vector_hashing(dimensions)?),
        };
        let options = NearOptions { shingling, hashing };
        options.family().map_err(explained)?;
        Ok(options)
    }

    fn minhashing(&self) -> MinHashing {
        let usual = MinHashing::default();
        MinHashing {
            threshold: self.threshold.unwrap_or(usual.threshold),
            permutations: self.permutations.unwrap_or(usual.permutations),
            bands: self.bands.map(|it| it.0),
            scheme: self.scheme.map_or(usual.scheme, Into::into),
            seed: self.seed.unwrap_or(usual.seed),
        }
    }

    fn simhashing(&self) -> Result<SimHashing> {
        let usual = SimHashing::default();
        let count = self.bits.unwrap_or(usual.bits.count());
        let Some(bits) = SimHashBits::of(count) else {
            refuse!("--bits: {count}; a SimHash has 64 or 128");
        };
        let distance = self.distance.unwrap_or(usual.distance.into());
        if distance < 0.0 || distance.fract() != 0.0 || distance >= bits.count().into() {
            refuse!(
                "--distance: {distance}; give a whole number of bits, fewer than {}",
                bits.count()
            );
        }
        Ok(SimHashing { bits, distance: distance as u32 })
    }

    fn vector_hashing(&self, dimensions: Option<u32>) -> Result<VectorHashing> {
        let (Some(dimensions), Some(distance)) = (dimensions, self.distance) else {
            refuse!(
                "an index of vectors needs --dimensions, how many numbers a vector has, and --distance, up to which two are \
                 near"
            );
        };
        let usual = VectorHashing::new(dimensions, distance);
        Ok(VectorHashing {
            tables: self.tables.unwrap_or(usual.tables),
            projections: self.projections.unwrap_or(usual.projections),
            width: self.width.or(usual.width),
            probes: self.probes.unwrap_or(usual.probes),
            seed: self.seed.unwrap_or(usual.seed),
            ..usual
        })
    }

    /// Returns the given options, and the families that they are for.
    fn given(&self) -> impl Iterator<Item = (&'static str, &'static [FamilyArg])> {
        use FamilyArg::{Minhash, PStable, Simhash};
        const TEXTS: &[FamilyArg] = &[Minhash, Simhash];
        const SETS: &[FamilyArg] = &[Minhash];
        const VECTORS: &[FamilyArg] = &[PStable];
        [
            ("shingle", self.shingle.is_some(), TEXTS),
            ("case-sensitive", self.case_sensitive, TEXTS),
            ("no-nfc", self.no_nfc, TEXTS),
            ("threshold", self.threshold.is_some(), SETS),
            ("permutations", self.permutations.is_some(), SETS),
            ("bands", self.bands.is_some(), SETS),
            ("scheme", self.scheme.is_some(), SETS),
            ("bits", self.bits.is_some(), &[Simhash]),
            ("distance", self.distance.is_some(), &[Simhash, PStable]),
            ("dimensions", self.dimensions.is_some(), VECTORS),
            ("tables", self.tables.is_some(), VECTORS),
            ("projections", self.projections.is_some(), VECTORS),
            ("width", self.width.is_some(), VECTORS),
            ("probes", self.probes.is_some(), VECTORS),
            ("seed", self.seed.is_some(), &[Minhash, PStable]),
        ]
        .into_iter()
        .filter_map(|(name, is_given, families)| is_given.then_some((name, families)))
    }

    /// Returns whether options are given that an index must agree with.
    fn are_given(&self) -> bool {
        self.given().next().is_some()
    }

    fn refuse_foreign(&self, family: FamilyArg) -> Result<()> {
        let Some((name, families)) = self.given().find(|(_, families)| !families.contains(&family))
        else {
            return Ok(());
        };
        let words: Vec<&str> = families.iter().map(|it| it.word()).collect();
        refuse!(
            "--{name} is for --family {}, and this is {}; leave it out, or say the family",
            words.join(" or "),
            family.word()
        );
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
