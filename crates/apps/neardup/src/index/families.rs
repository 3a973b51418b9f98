//! Indexes of the other families against the slow way, many threads against one, and RAM against its stated limit.

use nandex::device::MemoryDevice;
use nandex::raw::signature::{Signature, SimHashBits, Similarity, Sketcher};
use nandex::{VolumeOpenOptions, VolumeOptions};
use std::sync::Arc;

use super::tests::{CONFIG, Verdicts, made, options, update, volume};
use super::*;
use crate::numbers::Numbers;
use crate::{Document, Hashing, SimHashing, VectorHashing};

fn simhash(bits: SimHashBits, distance: u32) -> NearOptions {
    NearOptions { hashing: Hashing::SimHash(SimHashing { bits, distance }), ..options() }
}

fn vectors(probes: u32) -> NearOptions {
    let usual = VectorHashing::new(12, 0.5);
    let hashing = VectorHashing { tables: 4, projections: 4, probes, ..usual };
    NearOptions { hashing: Hashing::PStable(hashing), ..options() }
}

/// Creates vectors of twelve numbers: two in five are near earlier ones, and some are equal to these.
fn made_vectors(count: usize) -> Vec<Document> {
    let mut numbers = Numbers(11);
    let mut all: Vec<Vec<f64>> = Vec::new();
    for place in 0..count {
        let kind = numbers.below(10);
        let mut unit = || numbers.below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
        let vector = if place == 0 || kind >= 4 {
            (0..12).map(|_| 4.0 * unit()).collect()
        } else {
            let step = 0.15 * kind as f64;
            let other = (unit() + 0.5) * place as f64;
            all[other as usize].iter().map(|it| it + step * unit()).collect()
        };
        all.push(vector);
    }
    let text = |vector: &Vec<f64>| {
        let numbers: Vec<String> = vector.iter().map(|it| format!("{}", *it as f32)).collect();
        format!("[{}]", numbers.join(","))
    };
    let texts = all.iter().map(text).zip(0..);
    texts.map(|(text, number)| Document::new(format!("v{number}"), text)).collect()
}

/// Computes the signature of a document; `None` without shingles.
fn signature(sketcher: &Sketcher, text: &str) -> Option<Signature> {
    if let Family::PStable { .. } = sketcher.family() {
        let vector: Vec<f32> = serde_json::from_str(text).unwrap();
        return Some(sketcher.of_vector(&vector).unwrap());
    }
    let mut shingles = crate::Shingles::new(options().shingling);
    shingles.take(text);
    let features: Vec<(u64, u32)> =
        shingles.iter().map(|it| (nandex::raw::signature::Scheme::Fast.hash(it), 1)).collect();
    (!features.is_empty()).then(|| sketcher.of_features(&features).unwrap())
}

fn distance(sketcher: &Sketcher, left: &Signature, right: &Signature) -> f64 {
    match sketcher.similarity(left, right).unwrap() {
        Similarity::Hamming(bits) => bits.into(),
        // Records store 32 bits of it.
        Similarity::Distance(distance) => (distance as f32).into(),
        other => panic!("{other:?}"),
    }
}

/// Returns whether the second document finds the first by its buckets and probes.
fn meets(sketcher: &Sketcher, probes: u32, (first, second): (&Signature, &Signature)) -> bool {
    let (mut stored, mut asked) = (Vec::new(), Vec::new());
    sketcher.bucket_keys(first, &mut stored).unwrap();
    sketcher.bucket_keys(second, &mut asked).unwrap();
    if probes > 0 {
        sketcher.probe_keys(second, probes as usize, &mut asked).unwrap();
    }
    asked.chunks_exact(stored.len()).any(|row| row.iter().zip(&stored).any(|(a, b)| a == b))
}

/// The slow way: compares every earlier document that shares a bucket.
fn slow(options: &NearOptions, documents: &[Document]) -> (Verdicts, Vec<(String, String)>) {
    let sketcher = options.family().unwrap().sketcher().unwrap();
    let (probes, threshold) = (options.hashing.probes(), options.hashing.threshold());
    let mut all: Vec<(&Document, Option<Signature>, Verdict)> = Vec::new();
    let mut pairs = Vec::new();
    for document in documents {
        let equal = all.iter().find(|(other, ..)| other.text == document.text);
        if let Some((other, _, verdict)) = equal {
            let exact = Match { id: other.id.clone(), estimate: 0.0, is_exact: true };
            let verdict = match verdict {
                Verdict::Kept => Verdict::Removed(exact),
                near => near.clone(),
            };
            all.push((document, None, verdict));
            continue;
        }
        let own = signature(&sketcher, &document.text);
        let mut near: Vec<(f64, usize)> = Vec::new();
        for (place, (_, other, _)) in all.iter().enumerate() {
            let (Some(own), Some(other)) = (&own, other) else { continue };
            let distance = distance(&sketcher, own, other);
            if distance <= threshold && meets(&sketcher, probes, (other, own)) {
                near.push((distance, place));
            }
        }
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        pairs.extend(near.iter().map(|it| (document.id.clone(), all[it.1].0.id.clone())));
        let best = near.iter().find(|it| all[it.1].2 == Verdict::Kept);
        let verdict = best.map_or(Verdict::Kept, |(estimate, place)| {
            let id = all[*place].0.id.clone();
            Verdict::Removed(Match { id, estimate: *estimate, is_exact: false })
        });
        all.push((document, own, verdict));
    }
    (all.into_iter().map(|(it, _, verdict)| (it.id.clone(), verdict)).collect(), pairs)
}

#[test]
fn decisions_and_pairs_of_other_families_are_those_of_the_slow_way() {
    let cases = [
        (simhash(SimHashBits::Bits64, 9), made(500, 1)),
        (simhash(SimHashBits::Bits128, 20), made(500, 1)),
        (vectors(0), made_vectors(600)),
        (vectors(6), made_vectors(600)),
    ];
    let mut found_pairs = Vec::new();
    for (options, documents) in cases {
        let (expected, pairs) = slow(&options, &documents);
        for step in [600, 23] {
            let mut index = Index::create_in(&volume(), &options, CONFIG).unwrap();
            let mut found = Verdicts::new();
            for some in documents.chunks(step) {
                found.extend(update(&mut index, some, Repeats::Refuse).unwrap());
            }
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{options:?} in batches of {step}");
            }
            let mut listed = Vec::new();
            let take = |pair: &Pair| {
                let is_near = !pair.is_exact && pair.estimate <= options.hashing.threshold();
                assert!(is_near || pair.estimate == 0.0, "{pair:?}");
                listed.push((pair.id.clone(), pair.earlier.clone()));
                Ok(())
            };
            index.pairs(take).unwrap();
            assert!(pairs.iter().all(|pair| listed.contains(pair)), "{options:?}");
            assert_eq!(index.near() + index.exact() + index.kept(), documents.len() as u64);
        }
        found_pairs.push(pairs.len());
    }
    assert!(found_pairs.iter().all(|it| *it > 30), "{found_pairs:?}");
    assert!(found_pairs[3] > found_pairs[2], "probes find more: {found_pairs:?}");
}

#[test]
fn an_index_of_vectors_answers_removes_clusters_and_shows_itself_after_an_opening() {
    let device = Arc::new(MemoryDevice::new());
    let volume_options =
        VolumeOptions { log_bytes: 16 << 20, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(device.clone(), volume_options).unwrap();
    let mut index = Index::create_in(&volume, &vectors(6), CONFIG).unwrap();
    let documents = made_vectors(300);
    let found = update(&mut index, &documents, Repeats::Refuse).unwrap();
    index.close().unwrap();
    drop(volume);
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let mut index = Index::open_in(&volume, CONFIG).unwrap();
    index.check_options(&vectors(6)).unwrap();
    for other in [options(), simhash(SimHashBits::Bits64, 3), vectors(5)] {
        let error = index.check_options(&other).unwrap_err().to_string();
        assert!(error.contains("it has p-stable hashes of 12 numbers"), "{error}");
    }
    assert_eq!(update(&mut index, &documents, Repeats::Skip).unwrap(), found);
    let near = index.query(&[&documents[0].text, "[0,0,0,0,0,0,0,0,0,0,0,99]"]).unwrap();
    let first = &near[0].matches[0];
    assert_eq!((&first.id, first.estimate, first.is_exact), (&documents[0].id, 0.0, true));
    assert_eq!(near[1].matches, []);
    for (text, reason) in [
        ("word", "vector: expected numbers in brackets"),
        ("[1,2]", "vector: expected 12 numbers, found 2"),
    ] {
        let error = index.query(&[text]).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let summary = index.summary(None, 3).unwrap();
    assert_eq!((summary.measure, summary.tables, summary.probes), (Measure::Euclidean, 4, 6));
    assert!(summary.examples[0].estimate >= summary.examples[2].estimate, "least near first");
    assert!(summary.curve[0].1 == 1.0 && summary.curve.last().unwrap().1 < 0.2);
    assert!(summary.clusters > 10 && crate::html(&summary).contains("Euclidean distance"));
    let ids: Vec<&str> = documents.iter().map(|it| &it.id[..]).collect();
    assert_eq!(index.remove(&ids).unwrap().documents, 300);
    assert_eq!(index.query(&[&documents[0].text]).unwrap()[0].candidates, 0);
}

/// Returns an index's answers about documents and about itself, and the bytes of all its records.
fn answers(sketch_threads: usize, (options, documents): (&NearOptions, &[Document])) -> String {
    let config = IndexConfig { sketch_threads, ..CONFIG };
    let mut index = Index::create_in(&volume(), options, config).unwrap();
    let found = update(&mut index, documents, Repeats::Refuse).unwrap();
    let texts: Vec<&str> = documents.iter().map(|it| &it.text[..]).collect();
    let near = index.query(&texts).unwrap();
    let numbers: Vec<u64> = (0..documents.len() as u64).collect();
    let records = index.records_of(&numbers).unwrap();
    let records: Vec<Vec<u8>> = records.into_iter().flatten().map(|it| it.encode()).collect();
    assert_eq!(records.len(), documents.len());
    format!("{found:?}\n{near:?}\n{records:?}")
}

#[test]
fn answers_and_records_are_the_same_byte_for_byte_with_one_thread_and_with_seven() {
    // Enough documents for seven threads to have some each.
    for (options, documents) in [(options(), made(1500, 8)), (vectors(4), made_vectors(1000))] {
        let case = (&options, &documents[..]);
        assert!(answers(1, case) == answers(7, case), "{options:?}");
    }
}

#[test]
fn all_tables_and_the_filter_stay_within_the_stated_ram() {
    let folder = tempfile::tempdir().unwrap();
    // The usual number, and one for which three sixteenths of the RAM are too few for the buffers.
    for documents in [20_000, 6_500_000] {
        let path = folder.path().join(format!("{documents}.nandex"));
        let config = IndexConfig { documents, ..CONFIG };
        let mut index = Index::create(&path, &NearOptions::default(), config).unwrap();
        update(&mut index, &made(300, 9), Repeats::Refuse).unwrap();
        let taken = index.stats();
        assert!(taken.neighbors.ram_bytes <= config.ram_bytes / 16 * 7, "{documents}: {taken:?}");
        assert!(taken.ram_bytes <= config.ram_bytes, "{documents}: {taken:?}");
        index.close().unwrap();
        let taken = Index::open(&path, config).unwrap().stats();
        assert!(taken.ram_bytes <= config.ram_bytes, "{documents}: {taken:?}");
    }
    let more = IndexConfig { documents: 20_000_000, ram_bytes: 1 << 30, ..CONFIG };
    let path = folder.path().join("more.nandex");
    Index::create(&path, &NearOptions::default(), more).unwrap().close().unwrap();
    let error = Index::open(&path, CONFIG).unwrap_err().to_string();
    assert!(error.starts_with("ram_bytes: 67108864 bytes; the buffers of this index"), "{error}");
}
