//! The shadow against a model that cannot be wrong: lists of checkpoints and log records.
//!
//! The model knows, at every moment, each pair of checkpoint and end of the log that a power cut may leave, and the
//! resulting map: for each logical block the version with the highest number. No draft may be in a block that one of
//! these maps names.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::tests::{EXTENT, SHAPE};
use super::*;
use crate::bytes::Reader;

/// The next step of a test. Numbers choose among the possibilities.
#[derive(Clone, Copy, Debug)]
enum Act {
    Begin(u32),
    Publish(usize),
    /// The publication of a draft when the log has no space for its record.
    PublishUnlogged(usize),
    Abandon(usize),
    Sync,
    Capture,
    Commit,
    /// A power cut that leaves this much of the log's unsynced end; or the checkpoint that was being written.
    Crash(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..SHAPE.logical).prop_map(Act::Begin),
        6 => any::<usize>().prop_map(Act::Publish),
        1 => any::<usize>().prop_map(Act::PublishUnlogged),
        1 => any::<usize>().prop_map(Act::Abandon),
        3 => Just(Act::Sync),
        2 => Just(Act::Capture),
        2 => Just(Act::Commit),
        1 => any::<usize>().prop_map(Act::Crash),
    ]
}

/// The number of records of the model's log that fit a block. A record's place is that of its block.
const BLOCK_RECORDS: usize = 3;

/// A checkpoint: its capture, and the log that was synced before it was written.
#[derive(Clone)]
struct Checkpoint {
    capture: ShadowCapture,
    map: BTreeMap<u32, Block>,
    /// The log's end when the checkpoint was captured.
    log_end: usize,
}

struct Model {
    shadow: Shadow,
    epoch: u64,
    drafts: Vec<Draft>,
    map: BTreeMap<u32, Block>,
    log: Vec<MapUpdate>,
    /// The start of the log's open block.
    open: usize,
    synced: usize,
    durable: Checkpoint,
    pending: Option<Checkpoint>,
    generations: HashSet<u64>,
}

fn number(block: Block) -> u64 {
    generation::sequence(block.generation)
}

impl Model {
    fn new() -> Self {
        let shadow = Shadow::create(StructureId(1), EXTENT, SHAPE, 1);
        let capture = shadow.capture(Lsn(0));
        let durable = Checkpoint { capture, map: BTreeMap::new(), log_end: 0 };
        Self {
            shadow,
            epoch: 1,
            drafts: Vec::new(),
            map: BTreeMap::new(),
            log: Vec::new(),
            open: 0,
            synced: 0,
            durable,
            pending: None,
            generations: HashSet::new(),
        }
    }

    /// Returns the map that results from a checkpoint and the log up to `end`.
    fn amount(&self, checkpoint: &Checkpoint, end: usize) -> BTreeMap<u32, Block> {
        let mut map = checkpoint.map.clone();
        let tail = usize::try_from(checkpoint.capture.tail.0).unwrap();
        for update in &self.log[tail.min(end)..end] {
            let newest = map.entry(update.logical).or_insert(update.block);
            if number(update.block) > number(*newest) {
                *newest = update.block;
            }
        }
        map
    }

    /// Returns everything that a power cut may leave now: a checkpoint is written only once the log is synced.
    fn outcomes(&self) -> Vec<(&Checkpoint, usize)> {
        let checkpoints = [Some(&self.durable), self.pending.as_ref()].into_iter().flatten();
        let ends = |checkpoint: &Checkpoint| self.synced.max(checkpoint.log_end)..=self.log.len();
        checkpoints.flat_map(|it| ends(it).map(move |end| (it, end))).collect()
    }

    fn check(&self) {
        for logical in 0..SHAPE.logical {
            assert_eq!(self.shadow.block(logical), self.map.get(&logical).copied());
        }
        for (checkpoint, end) in self.outcomes() {
            let named: Vec<_> =
                self.amount(checkpoint, end).values().map(|block| block.physical).collect();
            for draft in &self.drafts {
                let physical = draft.block().physical;
                assert!(!named.contains(&physical), "{physical} is needed after a cut: {named:?}");
            }
        }
        let held = self.map.len() + self.drafts.len();
        let (free, waiting) = (self.shadow.free_blocks(), self.shadow.waiting_blocks());
        assert_eq!((held + free + waiting) as u64, SHAPE.physical(), "each block is one thing");
    }

    fn publish(&mut self, at: usize, logged: bool) {
        if self.drafts.is_empty() {
            return;
        }
        let draft = self.drafts.swap_remove(at % self.drafts.len());
        let update = self.shadow.update_map(draft, 3);
        self.map.insert(update.logical, update.block);
        if logged {
            self.shadow.logged(update, Lsn(self.open as u64));
            self.log.push(update);
            self.open +=
                if self.log.len() - self.open == BLOCK_RECORDS { BLOCK_RECORDS } else { 0 };
        }
    }

    /// Closes the open block and makes all of the log durable.
    fn sync(&mut self) {
        (self.synced, self.open) = (self.log.len(), self.log.len());
    }

    fn begin(&mut self, logical: u32) {
        if self.drafts.iter().any(|draft| draft.logical() == logical) {
            return;
        }
        if let Some(draft) = self.shadow.begin(logical, Lsn(self.synced as u64)) {
            assert_eq!(draft.logical(), logical);
            assert!(self.generations.insert(draft.block().generation), "a generation comes twice");
            self.drafts.push(draft);
        }
    }

    fn capture(&mut self) {
        let (capture, map) = (self.shadow.capture(Lsn(self.open as u64)), self.map.clone());
        self.pending = Some(Checkpoint { capture, map, log_end: self.log.len() });
    }

    fn commit(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.sync();
            self.shadow.committed(pending.capture.mark);
            self.durable = pending;
        }
    }

    fn crash(&mut self, choice: usize) {
        let outcomes = self.outcomes();
        let (checkpoint, end) = outcomes[choice % outcomes.len()];
        let (durable, map) = (checkpoint.clone(), self.amount(checkpoint, end));
        self.epoch += 1;
        let mut reader = Reader::new(&durable.capture.bytes, "shadow", PageId(0));
        let (structure, epoch) = (StructureId(1), self.epoch);
        let mut recovery =
            ShadowRecovery::start(structure, EXTENT, SHAPE, epoch, &mut reader).unwrap();
        let tail = usize::try_from(durable.capture.tail.0).unwrap();
        for update in &self.log[tail..end] {
            let bytes = update.encode();
            recovery.replay(&mut Reader::new(&bytes, "map update", PageId(0))).unwrap();
        }
        self.drafts.clear();
        self.shadow = recovery.finish();
        self.log.truncate(end);
        self.sync();
        (self.durable, self.pending, self.map) = (durable, None, map);
        assert_eq!(self.shadow.waiting_blocks(), 0, "after a recovery nothing waits");
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Begin(logical) => self.begin(logical),
            Act::Publish(at) => self.publish(at, true),
            Act::PublishUnlogged(at) => self.publish(at, false),
            Act::Abandon(_) if self.drafts.is_empty() => {}
            Act::Abandon(at) => drop(self.drafts.swap_remove(at % self.drafts.len())),
            Act::Sync => self.sync(),
            Act::Capture => self.capture(),
            Act::Commit => self.commit(),
            Act::Crash(choice) => self.crash(choice),
        }
        self.check();
    }
}

/// Mutants fail too, and must not leave their cases behind.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

fn acts(length_max: usize) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), 1..length_max)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_block_that_a_power_cut_may_bring_back_is_given_out(acts in acts(120)) {
        let mut model = Model::new();
        acts.into_iter().for_each(|act| model.act(act));
    }

    #[test]
    fn a_map_reads_back_as_it_was(acts in acts(60)) {
        let mut model = Model::new();
        acts.into_iter().for_each(|act| model.act(act));
        let bytes = model.shadow.capture(Lsn(0)).bytes;
        let map = ShadowMap::decode(&mut Reader::new(&bytes, "shadow", PageId(0)), SHAPE).unwrap();
        prop_assert_eq!(map.encode(), bytes);
    }
}
