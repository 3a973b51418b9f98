//! Many removals in one call against one call for each, and their costs.

use std::collections::BTreeSet;
use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::raw::device::Counted;
use nandex::{Table, Threads, VolumeOptions};

use super::tests::{CONFIG, Verdicts, made, on_flash, options, over_maps, update};
use super::*;
use crate::Document;
use crate::numbers::Numbers;

/// Removes each id in a separate call.
fn remove_singly(index: &mut Index, ids: &[&str]) -> Removed {
    let mut all = Removed::default();
    for id in ids {
        let removed = index.remove(&[*id]).unwrap();
        all.documents += removed.documents;
        all.unknown.extend(removed.unknown);
    }
    all
}

/// Two indexes of the same documents: one removes many in one call, and the other each in a separate call.
struct Twins {
    many: Index,
    singly: Index,
    live: BTreeSet<String>,
}

impl Twins {
    fn add(&mut self, documents: &[Document]) -> Verdicts {
        let found = update(&mut self.many, documents, Repeats::Refuse).unwrap();
        let expected = update(&mut self.singly, documents, Repeats::Refuse).unwrap();
        assert_eq!(found, expected);
        self.live.extend(documents.iter().map(|it| it.id.clone()));
        found
    }

    fn remove(&mut self, ids: &[&str]) {
        let removed = self.many.remove(ids).unwrap();
        let expected = remove_singly(&mut self.singly, ids);
        assert_eq!(removed.documents, expected.documents);
        // An id that an earlier batch removed is unknown to a later one, as to a second call.
        let mut unknown: Vec<&str> = Vec::new();
        for ids in ids.chunks(self.many.batch_documents) {
            unknown.extend(ids.iter().filter(|id| !self.live.contains(**id)));
            ids.iter().for_each(|id| _ = self.live.remove(*id));
        }
        assert_eq!(removed.unknown, unknown);
    }

    #[track_caller]
    fn check(&self, texts: &[&str]) {
        let (many, singly) = (&self.many, &self.singly);
        assert_eq!(many.documents() as usize, self.live.len());
        let counts = |it: &Index| (it.kept(), it.exact(), it.near());
        assert_eq!(counts(many), counts(singly));
        let keys = |it: &Index| it.keys.stats().entries;
        assert_eq!(keys(many), keys(singly), "in the table of keys");
        let found = many.query(texts).unwrap();
        assert_eq!(found, singly.query(texts).unwrap());
        let is_live = |it: &Match| self.live.contains(&it.id);
        assert!(found.iter().flat_map(|near| &near.matches).all(is_live));
    }
}

/// Creates documents with ids of their own, some with texts of others.
fn drawn(numbers: &mut Numbers, texts: &[Document], round: usize) -> Vec<Document> {
    let count = 1 + numbers.below(60) as usize;
    let text = |it: u64| texts[it as usize].text.clone();
    (0..count)
        .map(|it| Document::new(format!("{round}-{it}"), text(numbers.below(texts.len() as u64))))
        .collect()
}

#[test]
fn removals_of_many_leave_what_single_ones_leave_whatever_comes_between() {
    for (seed, (many, singly)) in [
        (1, (over_maps(), over_maps())),
        (2, (on_flash(), on_flash())),
        (3, (on_flash(), on_flash())),
    ] {
        let mut twins = Twins { many, singly, live: BTreeSet::new() };
        // Batches of removals are short, so that a call takes several.
        twins.many.batch_documents = 16;
        let mut numbers = Numbers(seed);
        let texts = made(150, seed);
        for round in 0..40 {
            twins.add(&drawn(&mut numbers, &texts, round));
            let live: Vec<String> = twins.live.iter().cloned().collect();
            let mut ids: Vec<&str> = Vec::new();
            for _ in 0..numbers.below(80) {
                // Some occur twice, and some are absent.
                match numbers.below(10) {
                    0 => ids.push("none"),
                    _ => ids.push(&live[numbers.below(live.len() as u64) as usize]),
                }
            }
            twins.remove(&ids);
            let asked: Vec<&str> = texts.iter().map(|it| &it.text[..]).collect();
            twins.check(&asked);
        }
        let all: Vec<String> = twins.live.iter().cloned().collect();
        twins.remove(&all.iter().map(String::as_str).collect::<Vec<_>>());
        twins.check(&[&texts[0].text]);
        assert_eq!(twins.many.keys.stats().entries, 0, "no key is left");
    }
}

#[test]
fn unknown_and_repeated_ids_of_a_call_are_told_and_removed_once() {
    let mut index = on_flash();
    let documents: Vec<Document> =
        made(40, 4).into_iter().map(|it| Document::new(format!("x{}", it.id), it.text)).collect();
    update(&mut index, &documents, Repeats::Refuse).unwrap();
    index.batch_documents = 4;
    // In one batch, and in two.
    let ids = ["xd1", "none", "xd1", "xd2", "none", "xd1", "", "xd3"];
    let removed = index.remove(&ids).unwrap();
    assert_eq!(removed.documents, 3);
    // An id of the first batch is unknown to the second, as to a second call.
    assert_eq!(removed.unknown, ["none", "none", "xd1", ""]);
    assert_eq!(index.documents(), 37);
    assert_eq!(index.remove::<&str>(&[]).unwrap(), Removed::default());
    assert_eq!(index.remove(&["none"]).unwrap().documents, 0);
}

#[test]
fn a_document_of_the_text_of_a_removed_one_is_found_by_its_text_when_both_were_alike() {
    let mut index = on_flash();
    let text = "one two three four five six seven eight nine ten";
    let near = "one two three four five six seven eight nine ten eleven";
    let document = |id: &str, text: &str| Document::new(id, text);
    update(&mut index, &[document("a", text), document("b", near)], Repeats::Refuse).unwrap();
    index.remove(&["a"]).unwrap();
    // The document that `b` was near has been removed, so the same text is decided on again, and is the first of its
    // text from now on.
    let found = update(&mut index, &[document("c", near)], Repeats::Refuse).unwrap();
    assert_eq!(found[0].1, Verdict::Kept);
    assert_eq!(index.remove(&["b"]).unwrap().documents, 1);
    let found = update(&mut index, &[document("d", near)], Repeats::Refuse).unwrap();
    assert!(
        matches!(&found[0].1, Verdict::Removed(it) if it.id == "c" && it.is_exact),
        "{found:?}"
    );
}

#[test]
fn many_removals_share_reads_and_syncs() {
    let counted = Arc::new(Counted::new(MemoryDevice::new()));
    let device: Arc<dyn Device> = Arc::clone(&counted) as Arc<dyn Device>;
    let threads = Threads::Inline;
    let usual = VolumeOptions::default();
    let volume_options =
        VolumeOptions { log_bytes: 16 << 20, threads, hash_key: Some(42), ..usual };
    let volume = Volume::create(device, volume_options).unwrap();
    let mut index = Index::create_in(&volume, &options(), CONFIG).unwrap();
    let documents = made(4000, 7);
    update(&mut index, &documents, Repeats::Refuse).unwrap();
    let ids: Vec<&str> = documents.iter().map(|it| &it.id[..]).collect();
    // The added documents are on flash.
    index.records.flush().unwrap();
    index.keys.flush().unwrap();
    index.alike.flush().unwrap();
    let mut costs = Vec::new();
    for ids in [&ids[..3000], &ids[3000..]] {
        let before = (index.stats(), counted.snapshot());
        let removed = match ids.len() {
            1000 => remove_singly(&mut index, ids),
            _ => index.remove(ids).unwrap(),
        };
        assert_eq!(removed.documents as usize, ids.len());
        let counts = counted.snapshot().since(&before.1);
        costs.push((index.stats().records_read - before.0.records_read, counts));
    }
    let [(records, many), (_, singly)] = costs[..] else { panic!("two parts: {costs:?}") };
    assert_eq!(records, 3000, "each record is read once");
    assert!(many.reads <= 3000 / 10, "{costs:?}");
    assert!(many.syncs <= 20, "{costs:?}");
    assert!(singly.reads >= 2000, "{costs:?}");
}
