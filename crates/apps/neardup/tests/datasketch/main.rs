//! The same signatures, bands and candidates as datasketch, and the same signatures as rensa.
//!
//! The test writes its results, and `compare.py` and `compare_rensa.py` compare them with the results of these
//! libraries for the same shingles; rensa in both of its ways: up to 0.4 and from 0.5 on. It needs python3 with its
//! venv module, and the network in its first run; it fails if they are missing. If `NANDEX_NEARDUP_TEXTS` is set, the
//! file that it names gives more texts, one per line:
//!
//! `NANDEX_NEARDUP_TEXTS=paragraphs.txt cargo test --release -p nandex-neardup --test datasketch -- --nocapture`
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its texts must stop")]

mod python;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use nandex::device::{Create, FileDevice, FileOptions};
use nandex::raw::device::Allocation;
use nandex::raw::signature::{Bands, ErrorWeights, Family, Scheme, Signature};
use nandex::{AnyNeighbors, NeighborsRequirements, Volume, VolumeOptions, slicelsh};
use nandex_neardup::{Shingles, Shingling};
use serde_json::json;

/// The most ids of a bucket that an index can have.
const BUCKET_IDS_MAX: u32 = 253;

/// The libraries to compare with.
const DATASKETCH: python::Packages =
    python::Packages { name: "datasketch-venv", wanted: "datasketch>=2,<3", module: "datasketch" };

/// The packages of rensa, and the names of their cases.
const RENSA: [(python::Packages, &str); 2] = [
    (python::Packages { name: "rensa-venv", wanted: "rensa>=0.4,<0.5", module: "rensa" }, "rensa"),
    (
        python::Packages { name: "rensa-0.5-venv", wanted: "rensa>=0.5,<0.6", module: "rensa" },
        "rensa-0.5",
    ),
];

/// A deterministic generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Creates texts; two in five are earlier ones with some words changed.
fn made(count: usize) -> Vec<String> {
    let mut numbers = Numbers(1);
    let mut texts: Vec<Vec<String>> = Vec::new();
    // The rank of a word is the product of two numbers, so that low ranks are frequent.
    let word = |numbers: &mut Numbers| {
        let rank = (1 + numbers.below(80)) * (1 + numbers.below(80));
        format!("{}{rank}", ["w", "é", "字", "ß", "Σ"][(rank % 5) as usize])
    };
    for place in 0..count {
        let kind = numbers.below(10);
        let text = if place == 0 || kind >= 4 {
            let length = 1 + numbers.below(90);
            (0..length).map(|_| word(&mut numbers)).collect()
        } else {
            let mut text = texts[numbers.below(place as u64) as usize].clone();
            for _ in 0..=kind {
                let at = numbers.below(text.len() as u64) as usize;
                text[at] = word(&mut numbers);
            }
            text
        };
        texts.push(text);
    }
    texts.into_iter().map(|words| words.join(" ")).collect()
}

/// Returns the shingles of different texts that have some.
fn shingled(texts: impl Iterator<Item = String>) -> Vec<Vec<String>> {
    let mut seen = HashSet::new();
    let mut shingles = Shingles::new(Shingling::default());
    let mut all = Vec::new();
    for text in texts {
        shingles.take(&text);
        let found: Vec<String> =
            shingles.iter().map(|it| String::from_utf8(it.to_vec()).unwrap()).collect();
        if !found.is_empty() && seen.insert(text) {
            all.push(found);
        }
    }
    all
}

fn signatures(family: &Family, shingles: &[Vec<String>]) -> Vec<Signature> {
    let sketcher = family.sketcher().unwrap();
    let Family::MinHash { scheme, .. } = family else { panic!("{family:?}") };
    let hashes = |shingles: &Vec<String>| -> Vec<u64> {
        shingles.iter().map(|shingle| scheme.hash(shingle.as_bytes())).collect()
    };
    shingles.iter().map(|it| sketcher.of_hashes(&hashes(it)).unwrap()).collect()
}

/// Returns the candidates of each document among all, from an index on flash.
fn candidates(folder: &Path, family: &Family, signatures: &[Signature]) -> Vec<Vec<u64>> {
    let asked = NeighborsRequirements {
        bucket_ids_max: BUCKET_IDS_MAX,
        policy: nandex::Policy::Reject,
        family: family.encode(),
        ..NeighborsRequirements::new(signatures.len() as u64 + 1000, family.tables())
    };
    let config = slicelsh::Config::advised(&asked).unwrap();
    let path = folder.join("alike.nandex");
    let (create, allocation) = (Create::New, Allocation::Sparse);
    let file = FileOptions { create, allocation, ..FileOptions::default() };
    let log_bytes = config.log_bytes_best();
    let options = VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(Arc::new(FileDevice::open(&path, &file).unwrap()), options);
    let alike = AnyNeighbors::create(&volume.unwrap(), "alike", &config.into()).unwrap();
    let sketcher = family.sketcher().unwrap();
    let mut keys = Vec::new();
    signatures.iter().for_each(|it| sketcher.bucket_keys(it, &mut keys).unwrap());
    let ids: Vec<u64> = (0..signatures.len() as u64).collect();
    alike.insert_many(&ids, &keys).unwrap();
    alike.flush().unwrap();
    let found = alike.candidates_many(&keys).unwrap();
    alike.close().unwrap();
    std::fs::remove_file(path).unwrap();
    found
}

/// Writes the values of some documents, and the candidates of all.
fn write_case(folder: &Path, name: &str, family: &Family, shingles: &[Vec<String>]) {
    let signatures = signatures(family, shingles);
    let Family::MinHash { permutations, bands, scheme, seed } = family else {
        panic!("{family:?}")
    };
    let (scheme, kind) = match scheme {
        Scheme::DatasketchLegacy => ("legacy", "datasketch"),
        Scheme::DatasketchAffine => ("affine32", "datasketch"),
        Scheme::Rensa => ("rensa", "rensa"),
        Scheme::RensaBuckets => ("rensa", "rensa-0.5"),
        Scheme::Fast => panic!("no other library has this scheme"),
    };
    let path = folder.join(format!("{name}.{kind}.jsonl"));
    let mut out = BufWriter::new(File::create(path).unwrap());
    let texts = name.split('.').next();
    let head = json!({
        "texts": texts, "scheme": scheme, "permutations": permutations, "seed": seed,
        "bands": [bands.count, bands.rows], "bucket_ids_max": BUCKET_IDS_MAX,
    });
    writeln!(out, "{head}").unwrap();
    let candidates = candidates(folder, family, &signatures);
    for (signature, candidates) in signatures.iter().zip(candidates) {
        let Signature::MinHash(values) = signature else { panic!("{signature:?}") };
        writeln!(out, "{}", json!([values, candidates])).unwrap();
    }
    out.flush().unwrap();
}

fn write_shingles(folder: &Path, name: &str, shingles: &[Vec<String>]) {
    let mut out = BufWriter::new(File::create(folder.join(format!("{name}.texts.jsonl"))).unwrap());
    shingles.iter().for_each(|it| writeln!(out, "{}", json!(it)).unwrap());
    out.flush().unwrap();
}

/// Writes the bands chosen for thresholds, permutations and weights.
fn write_bands(folder: &Path) {
    let mut out = BufWriter::new(File::create(folder.join("bands.jsonl")).unwrap());
    let mut write = |threshold: f64, permutations: u32, false_positives: f64| {
        let weights = ErrorWeights { false_positives, false_negatives: 1.0 - false_positives };
        let bands = Bands::optimal(threshold, permutations, weights).unwrap();
        let line = json!([
            threshold,
            permutations,
            weights.false_positives,
            weights.false_negatives,
            bands.count,
            bands.rows
        ]);
        writeln!(out, "{line}").unwrap();
    };
    for percent in (5..100).step_by(5) {
        write(f64::from(percent) / 100.0, 128, 0.5);
        write(f64::from(percent) / 100.0, 64, 0.25);
    }
    for threshold in [0.5, 0.8, 0.9] {
        write(threshold, 256, 0.5);
        write(threshold, 100, 0.75);
    }
}

#[test]
fn signatures_bands_and_candidates_are_those_of_datasketch() {
    let python = python::python(&DATASKETCH);
    let folder = tempfile::tempdir().unwrap();
    let made = shingled(made(1500).into_iter());
    write_shingles(folder.path(), "made", &made);
    let family = |scheme, permutations, (count, rows), seed| {
        let bands = Bands { count, rows };
        Family::MinHash { permutations, bands, scheme, seed }
    };
    let cases = [
        family(Scheme::DatasketchLegacy, 128, (9, 13), 1),
        family(Scheme::DatasketchLegacy, 64, (16, 4), 4_294_967_295),
        family(Scheme::DatasketchAffine, 128, (9, 13), 1),
        family(Scheme::DatasketchAffine, 100, (20, 5), 7),
        family(Scheme::Rensa, 128, (16, 8), 42),
        family(Scheme::Rensa, 40, (10, 4), u64::MAX),
        family(Scheme::RensaBuckets, 128, (16, 8), 42),
        family(Scheme::RensaBuckets, 41, (10, 4), u64::MAX),
        family(Scheme::RensaBuckets, 8, (2, 4), 1),
    ];
    for (number, family) in cases.iter().enumerate() {
        write_case(folder.path(), &format!("made.{number}"), family, &made);
    }
    if let Some(path) = std::env::var_os("NANDEX_NEARDUP_TEXTS") {
        let lines = BufReader::new(File::open(path).unwrap()).lines();
        let texts = shingled(lines.map(|line| line.unwrap()));
        write_shingles(folder.path(), "file", &texts);
        for (number, family) in [&cases[0], &cases[2]].into_iter().enumerate() {
            write_case(folder.path(), &format!("file.{number}"), family, &texts);
        }
    }
    write_bands(folder.path());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/datasketch");
    let compare = |python: &Path, script: &str, more: &[&str]| {
        let mut compare = std::process::Command::new(python);
        compare.arg(scripts.join(script)).arg(folder.path()).args(more);
        let output = python::run(&mut compare, "the lines above differ");
        print!("{}", String::from_utf8_lossy(&output.stdout));
    };
    compare(&python, "compare.py", &[]);
    for (rensa, kind) in RENSA {
        compare(&python::python(&rensa), "compare_rensa.py", &[kind]);
    }
}
