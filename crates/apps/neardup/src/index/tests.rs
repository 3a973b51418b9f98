//! Decisions against the slow way, over maps in RAM and over flash; repeated, removed and unusual documents.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::raw::device::Counted;
use nandex::raw::signature::{Bands, Scheme, SimHashBits};
use nandex::{AnyNeighbors, Threads, VolumeOpenOptions, VolumeOptions};

use super::brute::Brute;
use super::*;
use crate::numbers::Numbers;
use crate::{Cluster, Document, Hashing, MinHashing, Shingles, SimHashing, Unit, VectorHashing};

pub(super) const CONFIG: IndexConfig = IndexConfig {
    ram_bytes: crate::RAM_BYTES_MIN,
    documents: 20_000,
    bucket_ids_max: 64,
    sketch_threads: 1,
};

pub(super) fn options() -> NearOptions {
    let bands = Some(Bands { count: 8, rows: 4 });
    let shingling = Shingling { length: 2, ..Shingling::default() };
    let usual = MinHashing::default();
    let hashing = MinHashing { threshold: 0.6, permutations: 32, bands, ..usual };
    NearOptions { shingling, hashing: Hashing::MinHash(hashing) }
}

fn changed(change: impl FnOnce(&mut MinHashing)) -> NearOptions {
    let mut options = options();
    let Hashing::MinHash(hashing) = &mut options.hashing else { panic!("{options:?}") };
    change(hashing);
    options
}

pub(super) fn volume() -> Volume {
    let log_bytes = 16 << 20;
    let options = VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
    Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
}

pub(super) fn on_flash() -> Index {
    Index::create_in(&volume(), &options(), CONFIG).unwrap()
}

pub(super) fn over_maps() -> Index {
    let (volume, family) = (volume(), options().family().unwrap());
    let buckets = Arc::default();
    let brute = Brute { tables: family.tables(), family: family.encode(), buckets };
    let tables =
        Tables::create_over(&volume, (&CONFIG, &Stated::default()), AnyNeighbors::from(brute))
            .unwrap();
    Index::begin(&volume, (&options(), family), (CONFIG, tables)).unwrap()
}

/// Creates texts; some are equal to earlier ones, and some differ from them in a few words.
pub(super) fn made(count: usize, seed: u64) -> Vec<Document> {
    let mut numbers = Numbers(seed);
    let mut texts: Vec<Vec<u64>> = Vec::new();
    for place in 0..count {
        let kind = numbers.below(10);
        let words = if place == 0 || kind >= 5 {
            let length = numbers.below(50);
            (0..length).map(|_| numbers.below(5000)).collect()
        } else {
            let mut words = texts[numbers.below(place as u64) as usize].clone();
            for _ in 0..kind {
                let length = words.len() as u64;
                if length > 0 {
                    words[numbers.below(length) as usize] = numbers.below(5000);
                }
            }
            words
        };
        texts.push(words);
    }
    let text = |words: &Vec<u64>| words.iter().map(|it| format!("w{it}")).collect::<Vec<_>>();
    let texts = texts.iter().map(|words| text(words).join(" "));
    texts.zip(0..).map(|(text, number)| Document::new(format!("d{number}"), text)).collect()
}

pub(super) type Verdicts = Vec<(String, Verdict)>;

pub(super) fn update(
    index: &mut Index,
    documents: &[Document],
    repeats: Repeats,
) -> Result<Verdicts> {
    let mut found = Vec::new();
    index.update(documents.iter().cloned().map(Ok), repeats, |document, outcome| {
        found.push((document.id.clone(), outcome.verdict.clone()));
        Ok(())
    })?;
    Ok(found)
}

/// A signature and its bucket keys; `None` for a text without words.
type SlowSketch = Option<(Vec<u32>, Vec<u64>)>;

/// The slow way: compares all earlier documents.
#[derive(Default)]
struct Slow {
    /// The documents with their signatures and keys, and whether each is kept.
    all: Vec<(Document, SlowSketch, Verdict)>,
    pairs: Vec<(String, String, u32)>,
}

impl Slow {
    fn add(&mut self, document: &Document) -> Verdict {
        let equal = self.all.iter().find(|(other, _, _)| other.text == document.text);
        if let Some((other, _, verdict)) = equal {
            let exact = Match { id: other.id.clone(), estimate: 1.0, is_exact: true };
            let verdict = match verdict {
                Verdict::Kept => Verdict::Removed(exact),
                near => near.clone(),
            };
            self.all.push((document.clone(), None, verdict.clone()));
            return verdict;
        }
        let sketch = sketch(&document.text);
        let mut near = Vec::new();
        for (place, (other, theirs, verdict)) in self.all.iter().enumerate() {
            let (Some((values, keys)), Some((their_values, their_keys))) = (&sketch, theirs) else {
                continue;
            };
            let is_candidate = keys.iter().zip(their_keys).any(|(left, right)| left == right);
            let shared = values.iter().zip(their_values).filter(|(a, b)| a == b).count() as u32;
            if is_candidate && f64::from(shared) / 32.0 >= 0.6 {
                near.push((
                    std::cmp::Reverse(shared),
                    place,
                    *verdict == Verdict::Kept,
                    other.id.clone(),
                ));
            }
        }
        near.sort();
        self.pairs.extend(near.iter().map(|it| (document.id.clone(), it.3.clone(), it.0.0)));
        let verdict = match near.iter().find(|it| it.2) {
            Some((shared, _, _, id)) => {
                let estimate = f64::from(shared.0) / 32.0;
                Verdict::Removed(Match { id: id.clone(), estimate, is_exact: false })
            }
            None => Verdict::Kept,
        };
        self.all.push((document.clone(), sketch, verdict.clone()));
        verdict
    }
}

fn sketch(text: &str) -> SlowSketch {
    let mut shingles = Shingles::new(options().shingling);
    shingles.take(text);
    let hashes: Vec<u64> = shingles.iter().map(|it| Scheme::Fast.hash(it)).collect();
    let sketcher = options().family().unwrap().sketcher().unwrap();
    let signature = (!hashes.is_empty()).then(|| sketcher.of_hashes(&hashes).unwrap())?;
    let mut keys = Vec::new();
    sketcher.bucket_keys(&signature, &mut keys).unwrap();
    match signature {
        nandex::raw::signature::Signature::MinHash(values) => Some((values, keys)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_decision_and_pair_is_that_of_the_slow_way() {
    let documents = made(600, 1);
    let mut slow = Slow::default();
    let expected: Verdicts = documents.iter().map(|it| (it.id.clone(), slow.add(it))).collect();
    let kinds = |it: &dyn Fn(&Verdict) -> bool| expected.iter().filter(|(_, v)| it(v)).count();
    let is =
        |exact: bool| move |it: &Verdict| matches!(it, Verdict::Removed(m) if m.is_exact == exact);
    assert!(kinds(&is(true)) > 30 && kinds(&is(false)) > 60, "the texts have duplicates");
    for (mut index, step) in
        [(over_maps(), 600), (over_maps(), 7), (on_flash(), 600), (on_flash(), 50)]
    {
        let mut found = Vec::new();
        for some in documents.chunks(step) {
            found.extend(update(&mut index, some, Repeats::Refuse).unwrap());
        }
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "in batches of {step}");
        }
        assert_eq!(index.documents(), 600);
        assert_eq!(index.kept() as usize, kinds(&|it| *it == Verdict::Kept));
        assert_eq!(index.exact() as usize, kinds(&is(true)));
        let mut pairs = Vec::new();
        let take = |pair: &Pair| {
            let shared = (pair.estimate * 32.0) as u32;
            pairs.extend((!pair.is_exact).then(|| (pair.id.clone(), pair.earlier.clone(), shared)));
            Ok(())
        };
        index.pairs(take).unwrap();
        let new_texts: Vec<_> =
            pairs.iter().filter(|it| slow.pairs.contains(it)).cloned().collect();
        assert_eq!(new_texts, slow.pairs);
        // The others are of documents with the text of one that is near another.
        let others = pairs.iter().filter(|it| !slow.pairs.contains(it));
        for (id, earlier, _) in others {
            let (_, verdict) = expected.iter().find(|it| it.0 == *id).unwrap();
            assert!(matches!(verdict, Verdict::Removed(m) if m.id == *earlier), "{id} {earlier}");
        }
    }
}

#[test]
fn an_index_that_is_opened_again_goes_on_where_it_was() {
    let documents = made(300, 2);
    let expected = update(&mut over_maps(), &documents, Repeats::Refuse).unwrap();
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let log_bytes = 16 << 20;
    let volume_options =
        VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(Arc::clone(&device), volume_options).unwrap();
    let mut index = Index::create_in(&volume, &options(), CONFIG).unwrap();
    let mut found = update(&mut index, &documents[..100], Repeats::Refuse).unwrap();
    for part in [&documents[100..200], &documents[200..]] {
        index.close().unwrap();
        let volume = Volume::open(Arc::clone(&device), VolumeOpenOptions::default()).unwrap();
        index = Index::open_in(&volume, CONFIG).unwrap();
        index.check_options(&options()).unwrap();
        found.extend(update(&mut index, part, Repeats::Refuse).unwrap());
    }
    assert_eq!(found, expected);
    // The same run again gives the same decisions, and adds nothing.
    assert_eq!(update(&mut index, &documents, Repeats::Skip).unwrap(), expected);
    assert_eq!(index.documents(), 300);
}

#[test]
fn an_id_that_comes_twice_is_an_error_or_is_left_out_if_its_text_is_the_same() {
    for mut index in [over_maps(), on_flash()] {
        let document = |id: &str, text: &str| Document::new(id, text);
        let first = [document("a", "one two three"), document("b", "four five six")];
        update(&mut index, &first, Repeats::Refuse).unwrap();
        let refusal = |index: &mut Index, documents: &[Document], repeats| {
            update(index, documents, repeats).unwrap_err().to_string()
        };
        let found = refusal(&mut index, &first[1..], Repeats::Refuse);
        assert!(
            found.starts_with("document b is in the index already, with the same text"),
            "{found}"
        );
        for repeats in [Repeats::Refuse, Repeats::Skip] {
            let found = refusal(&mut index, &[document("a", "other")], repeats);
            assert!(found.contains("with another text; remove the old one first"), "{found}");
            let twice = [document("c", "x y z"), document("c", "z y x")];
            assert!(refusal(&mut index, &twice, repeats).contains("document c is in the index"));
        }
        assert_eq!(index.documents(), 2, "a batch with an error counts as a whole not");
        let again = [document("c", "one two three"), document("c", "one two three")];
        let found = update(&mut index, &again, Repeats::Skip).unwrap();
        assert_eq!(found[0], found[1]);
        assert!(matches!(&found[0].1, Verdict::Removed(it) if it.id == "a" && it.is_exact));
        assert_eq!(index.documents(), 3);
    }
}

#[test]
fn documents_without_words_are_kept_and_like_no_other_and_one_word_is_a_shingle() {
    let mut index = on_flash();
    let texts = ["", "...", "", "word", "word!", "other", " "];
    let documents: Vec<Document> =
        texts.iter().zip('a'..).map(|(text, id)| Document::new(id.to_string(), *text)).collect();
    let found = update(&mut index, &documents, Repeats::Refuse).unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|(id, verdict)| match verdict {
            Verdict::Kept => format!("{id} kept"),
            Verdict::Removed(it) => format!("{id} is {} {} {}", it.id, it.estimate, it.is_exact),
            Verdict::RemovedForGone => format!("{id} gone"),
        })
        .collect();
    let expected =
        ["a kept", "b kept", "c is a 1 true", "d kept", "e is d 1 false", "f kept", "g kept"];
    assert_eq!(shown, expected);
    let near = index.query(&["WORD", "", "?", "absent"]).unwrap();
    let ids = |near: &Near| near.matches.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    assert_eq!(
        near.iter().map(ids).collect::<Vec<_>>(),
        [vec!["d", "e"], vec!["a"], vec![], vec![]]
    );
}

#[test]
fn what_was_removed_is_new_when_it_comes_again() {
    for mut index in [over_maps(), on_flash()] {
        let text = "a text of some ten words that all others are near";
        let documents =
            [("a", text), ("b", text), ("c", "A text of some ten words that all others are near!")]
                .map(|(id, text)| Document::new(id, text));
        update(&mut index, &documents, Repeats::Refuse).unwrap();
        assert_eq!((index.kept(), index.exact(), index.near()), (1, 1, 1));
        let removed = index.remove(&["a", "none", "a"]).unwrap();
        assert_eq!(removed, Removed { documents: 1, unknown: vec!["none".into()] });
        assert_eq!((index.kept(), index.exact(), index.near()), (0, 1, 1));
        let gone = update(&mut index, &documents[1..], Repeats::Skip).unwrap();
        assert!(gone.iter().all(|(_, verdict)| *verdict == Verdict::RemovedForGone), "{gone:?}");
        let mut pairs = Vec::new();
        index
            .pairs(|pair| {
                pairs.push(pair.clone());
                Ok(())
            })
            .unwrap();
        assert_eq!(pairs, [], "no pair with a document that has gone");
        let again = update(&mut index, &documents[..1], Repeats::Refuse).unwrap();
        assert_eq!(again, [("a".to_owned(), Verdict::Kept)]);
        // A text that was near a removed document is decided on again under another id.
        let other = [Document::new("d", documents[2].text.clone())];
        let found = update(&mut index, &other, Repeats::Refuse).unwrap();
        assert!(matches!(&found[0].1, Verdict::Removed(it) if it.id == "a"), "{found:?}");
        assert_eq!(index.remove(&["a", "b", "c", "d"]).unwrap().documents, 4);
        assert_eq!(index.documents(), 0);
        assert_eq!(index.query(&[text]).unwrap()[0], Near::default());
    }
}

#[test]
fn clusters_are_what_pairs_connect() {
    let mut index = on_flash();
    let documents = made(400, 3);
    update(&mut index, &documents, Repeats::Refuse).unwrap();
    let mut of: BTreeMap<String, String> = BTreeMap::new();
    let mut edges = Vec::new();
    index
        .pairs(|pair| {
            edges.push((pair.id.clone(), pair.earlier.clone()));
            Ok(())
        })
        .unwrap();
    edges.iter().flat_map(|(a, b)| [a, b]).for_each(|id| drop(of.insert(id.clone(), id.clone())));
    for _ in 0..of.len() {
        for (a, b) in &edges {
            let least = of[a].clone().min(of[b].clone());
            of.insert(a.clone(), least.clone());
            of.insert(b.clone(), least);
        }
    }
    let mut expected: HashMap<String, Vec<String>> = HashMap::new();
    of.into_iter().for_each(|(id, least)| expected.entry(least).or_default().push(id));
    let mut expected: Vec<Vec<String>> = expected.into_values().collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    let take = |cluster: &Cluster| {
        assert!(!cluster.goes_on);
        let mut ids = cluster.ids.clone();
        ids.sort();
        found.push(ids);
        Ok(())
    };
    let clustered = index.clusters(None, take).unwrap();
    assert_eq!(clustered.clusters as usize, expected.len());
    assert_eq!(clustered.documents as usize, expected.iter().map(Vec::len).sum::<usize>());
    expected.iter_mut().for_each(|ids| ids.sort());
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn other_options_another_family_and_no_index_are_refused() {
    let volume = volume();
    let index = Index::create_in(&volume, &options(), CONFIG).unwrap();
    for other in [
        changed(|it| it.seed = 2),
        changed(|it| it.threshold = 0.7),
        changed(|it| it.scheme = Scheme::Rensa),
        NearOptions { hashing: Hashing::SimHash(SimHashing::default()), ..options() },
        NearOptions { hashing: Hashing::PStable(VectorHashing::new(3, 0.5)), ..options() },
        NearOptions {
            shingling: Shingling { unit: Unit::Characters, ..options().shingling },
            ..options()
        },
    ] {
        let error = index.check_options(&other).unwrap_err();
        assert!(matches!(error, Error::OtherOptions { .. }), "{error}");
    }
    index.close().unwrap();
    let brute = |family: Family| {
        let buckets = Arc::default();
        Brute { tables: family.tables(), family: family.encode(), buckets }
    };
    let simhash = Family::SimHash { bits: SimHashBits::Bits64, distance: 3 };
    let open = |brute: Brute| {
        let tables =
            Tables::open_over(&volume, (&CONFIG, &Stated::default()), AnyNeighbors::from(brute))
                .unwrap();
        Index::resume(&volume, (CONFIG, tables)).map(drop)
    };
    let error = open(brute(simhash)).unwrap_err().to_string();
    assert!(error.contains("distance: 0.6; this family has 3"), "{error}");
    let error = open(Brute { family: vec![9; 9], ..brute(simhash) }).unwrap_err().to_string();
    assert!(error.contains("expected a family of hashes of version 1"), "{error}");
    let empty = super::tests::volume();
    assert!(Index::open_in(&empty, CONFIG).is_err());
}

#[test]
fn an_error_of_a_document_leaves_those_before_it() {
    let mut index = over_maps();
    let bad = || nandex_corpus::Error::Malformed { document: "x:3".into(), reason: "bad".into() };
    let documents = made(2, 4).into_iter().map(Ok).chain([Err(bad())]);
    let mut taken = 0;
    let found = index.update(documents, Repeats::Refuse, |_, _| {
        taken += 1;
        Ok(())
    });
    assert_eq!(found.unwrap_err().to_string(), "document x:3: bad");
    assert_eq!((taken, index.documents()), (2, 2));
}

#[test]
fn an_index_that_is_full_says_so_and_stays_as_it_was() {
    let config = IndexConfig { documents: 2000, ..CONFIG };
    let mut index = Index::create_in(&volume(), &options(), config).unwrap();
    let text = |n: u64| format!("w{n} w{} w{} own{n} x{n} y{n}", n * 7, n * 13);
    let documents: Vec<Document> =
        (0..60_000).map(|n| Document::new(n.to_string(), text(n))).collect();
    let mut added = 0;
    let error = documents.chunks(1000).find_map(|some| {
        let found = update(&mut index, some, Repeats::Refuse);
        added += found.as_ref().map_or(0, |_| some.len() as u64);
        found.err()
    });
    let error = error.expect("30 times as many documents as it is for");
    assert!(matches!(error, Error::NoSpace(_)), "{error}");
    assert!(error.to_string().contains("make an index for more documents"), "{error}");
    assert!(added >= 2000 && index.documents() == added, "{added}");
    let found = update(&mut index, &documents[..2000], Repeats::Skip).unwrap();
    assert_eq!(found.len(), 2000);
}

/// Very many equal documents, and very many that share all buckets.
fn crowd(equal: u64, alike: u64) {
    let mut index = Index::create_in(&volume(), &options(), CONFIG).unwrap();
    let boilerplate = (0..100).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
    let document = |n: u64| {
        // Punctuation makes another text of the same shingles.
        let dots = if n < equal { String::new() } else { ".".repeat((n - equal + 1) as usize) };
        Ok(Document::new(n.to_string(), format!("{boilerplate}{dots}")))
    };
    let (mut kept, mut others) = (0, 0);
    let updated = index.update((0..equal + alike).map(document), Repeats::Refuse, |_, outcome| {
        match &outcome.verdict {
            Verdict::Kept => kept += 1,
            Verdict::Removed(found) if found.id == "0" => others += 1,
            other => panic!("{other:?}"),
        }
        Ok(())
    });
    let updated = updated.unwrap();
    assert_eq!((kept, others), (1, equal + alike - 1));
    assert_eq!((updated.exact, updated.near), (equal - 1, alike));
    assert_eq!(index.stats().signatures, alike + 1, "equal texts have none");
    let pairs = index.query(&[&format!("{boilerplate}?")]).unwrap();
    let found = &pairs[0];
    assert_eq!(found.matches[0].id, "0");
    let bounded = u64::from(CONFIG.bucket_ids_max);
    assert!(found.candidates >= bounded.min(alike + 1), "{}", found.candidates);
}

#[test]
fn many_equal_documents_take_no_space_in_buckets_and_many_alike_are_bounded() {
    crowd(5000, 700);
}

#[test]
fn a_million_equal_documents_are_one_and_its_duplicates() {
    crowd(1_000_000, 700);
}

#[test]
fn one_percent_more_documents_cost_one_percent_more() {
    let counted = Arc::new(Counted::new(MemoryDevice::new()));
    let device: Arc<dyn Device> = Arc::clone(&counted) as Arc<dyn Device>;
    // Without threads, so that work of the first part is not postponed to the second.
    let threads = Threads::Inline;
    let volume_options = VolumeOptions {
        log_bytes: 16 << 20,
        threads,
        hash_key: Some(42),
        ..VolumeOptions::default()
    };
    let volume = Volume::create(device, volume_options).unwrap();
    let mut index = Index::create_in(&volume, &options(), CONFIG).unwrap();
    let documents = made(24_240, 5);
    let mut costs = Vec::new();
    for part in [&documents[..24_000], &documents[24_000..]] {
        let before = (index.stats(), counted.snapshot());
        update(&mut index, part, Repeats::Refuse).unwrap();
        let after = (index.stats(), counted.snapshot());
        costs.push([
            after.0.signatures - before.0.signatures,
            after.0.records_read - before.0.records_read,
            after.1.since(&before.1).pages_written,
        ]);
    }
    let [[signatures, _, pages], [more_signatures, more_records, more_pages]] = costs[..] else {
        panic!("two parts: {costs:?}")
    };
    assert!(more_signatures as f64 <= 0.015 * signatures as f64, "{costs:?}");
    assert!(more_pages as f64 <= 0.015 * pages as f64, "{costs:?}");
    // A record is read once for all documents of a batch, so the rate is that of small batches: about one per document.
    assert!(more_records <= 240, "{costs:?}");
}
