//! Streams through RAM buffers into tables, with and without queries.

use nandex_sim::RequestKind;
use nandex_sim::preset::{Machine, PresetError};
use nandex_sim::{Fill, Ssd};

use super::design::{Design, Keeps, Kind, query as reads_of};
use super::law::{Law, Tokens};
use super::ram::RamBuffer;
use super::record::{OpCounts, Places, Record};
use super::shape::{DataSet, Shape};
use crate::play::Player;
use crate::tape::{Act, Tape};
use crate::{Error, Result, Scale, fits, vary};

/// RAM buffers of Table 2, in percent of the data segment.
pub const RAM_PERCENTS: [u64; 4] = [1, 2, 5, 10];
/// The RAM buffer that most figures fix.
pub const RAM_PERCENT: u64 = 5;
/// Queries that are played on drives.
const PLAYED: u64 = 2_000;
/// The size of a drive over its table: a page in 64 of a full drive changes, and its spare pages are several
/// times as many. So a layer copies hardly anything when it cleans, as on the paper's whole drive.
pub const LARGER_TIMES: u64 = 64;

/// Returns [`LARGER_TIMES`] with its variation.
pub fn larger_times() -> u64 {
    vary::value(&fits::LARGER_DRIVE, LARGER_TIMES)
}
/// The minimum blocks of each plane, so that the spare ones are whole blocks.
const BLOCKS_MIN: u64 = 64;

/// A data set at a scale, and the law of its tokens.
#[derive(Clone, Copy, Debug)]
pub struct Lab {
    /// Its sizes.
    pub shape: Shape,
    law: Law,
    seed: u64,
}

/// A design with a RAM buffer of some size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableSetup {
    /// The design.
    pub kind: Kind,
    /// Its RAM buffer, in percent of the data segment.
    pub percent: u64,
}

impl TableSetup {
    /// Returns each design with each RAM buffer.
    #[must_use]
    pub fn all(kinds: &[Kind], percents: &[u64]) -> Vec<Self> {
        let with = |percent| kinds.iter().map(move |kind| Self { kind: *kind, percent });
        percents.iter().copied().flat_map(with).collect()
    }
}

/// A table after all tokens.
#[derive(Debug)]
pub struct Filled {
    /// The design and its RAM buffer.
    pub setup: TableSetup,
    /// Its operations.
    pub record: Record,
}

impl Filled {
    /// Returns the counts of its operations.
    #[must_use]
    pub fn counts(&self) -> OpCounts {
        self.record.counts
    }
}

/// Returns the table with this design and RAM buffer.
///
/// # Panics
/// Panics if there is none.
#[must_use]
pub fn of(all: &[Filled], kind: Kind, percent: u64) -> &Filled {
    let wanted = TableSetup { kind, percent };
    all.iter().find(|it| it.setup == wanted).expect("it was filled")
}

/// A table while tokens arrive.
struct Live {
    setup: TableSetup,
    table: Box<dyn Design>,
}

/// A RAM buffer, and the tables that it feeds.
struct Feeding {
    buffer: RamBuffer,
    tables: Vec<Live>,
}

impl Feeding {
    /// Creates the setups that have a buffer of this size.
    fn new(shape: Shape, setups: &[TableSetup], percent: u64, keeps: Keeps) -> Self {
        let live =
            |setup: &TableSetup| Live { setup: *setup, table: setup.kind.table(shape, keeps) };
        let tables = setups.iter().filter(|it| it.percent == percent).map(live).collect();
        Self { buffer: RamBuffer::new(shape, percent), tables }
    }

    fn insert(&mut self, key: u64) {
        self.buffer.insert(key);
        if self.buffer.is_full() {
            self.stage();
        }
    }

    fn stage(&mut self) {
        let staged = self.buffer.take();
        self.tables.iter_mut().for_each(|it| it.table.stage(&staged));
    }

    fn ask(&self, shape: Shape, key: u64, all: &mut [Queried]) {
        let each = (shape.queries / PLAYED).max(1);
        for (live, queried) in self.tables.iter().zip(all) {
            let places = Places::new(&shape, live.setup.kind.change());
            let (reads, in_data) = reads_of(&*live.table, &shape, places, key);
            queried.add(&reads, in_data || self.buffer.has(key), each);
            queried.data_pages += pages_of_data(&*live.table, key);
        }
    }

    /// Stages and merges everything.
    fn finish(mut self) -> Vec<Filled> {
        if !self.buffer.is_empty() {
            self.stage();
        }
        self.tables.iter_mut().for_each(|it| it.table.finish());
        let filled = |it: Live| Filled { setup: it.setup, record: it.table.record().clone() };
        self.tables.into_iter().map(filled).collect()
    }
}

/// Runs `work` for each size of a RAM buffer, each on a thread of its own with the same stream of tokens.
fn for_each_buffer<T: Send>(setups: &[TableSetup], work: impl Fn(u64) -> Vec<T> + Sync) -> Vec<T> {
    let mut percents: Vec<u64> = setups.iter().map(|it| it.percent).collect();
    percents.sort_unstable();
    percents.dedup();
    let work = &work;
    std::thread::scope(|scope| {
        let start = |percent| scope.spawn(move || work(percent));
        let threads: Vec<_> = percents.into_iter().map(start).collect();
        let ended = threads.into_iter().map(|it| it.join().expect("no thread panics"));
        ended.flatten().collect()
    })
}

/// The average reads of queries from a table, and some of the queries for drives.
#[derive(Debug)]
pub struct Queried {
    /// The table.
    pub setup: TableSetup,
    /// Queries.
    pub queries: u64,
    /// The queries whose key was in the data segment or in the RAM buffer.
    pub found: u64,
    /// The reads of all queries.
    pub reads: OpCounts,
    /// The reads of pages of the data segment and its overflow among these.
    pub data_pages: u64,
    /// Some queries, each of which is an operation of the tape.
    pub tape: Tape,
}

impl Lab {
    /// Creates a data set with the law that has Table 2's stages at 1 % of RAM.
    #[must_use]
    pub fn new(set: DataSet, scale: Scale) -> Self {
        let shape = set.at(scale);
        Self::with_law(shape, Law::by_stages(&shape, scale), scale)
    }

    /// Creates a data set with another law.
    #[must_use]
    pub fn with_law(shape: Shape, law: Law, scale: Scale) -> Self {
        Self { shape, law, seed: scale.seed() }
    }

    /// Returns the tokens.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.law, self.seed, 0)
    }

    /// Inserts all tokens into all tables, then merges the staged ones.
    #[must_use]
    pub fn fill(&self, setups: &[TableSetup]) -> Vec<Filled> {
        fill(self.shape, setups, || self.stream(0))
    }

    /// Inserts all tokens. After the first part of them come queries for keys that are drawn as tokens are.
    #[must_use]
    pub fn query(&self, setups: &[TableSetup]) -> Vec<Queried> {
        query(self.shape, setups, || self.stream(0), || self.stream(1))
    }

    /// Returns the tokens of a stream, without an end.
    fn stream(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        let mut tokens = Tokens::new(self.law, self.seed, number);
        std::iter::repeat_with(move || tokens.draw())
    }
}

/// Inserts the tokens of a stream into all tables, then merges the staged ones.
pub fn fill<I: Iterator<Item = u64>>(
    shape: Shape,
    setups: &[TableSetup],
    stream: impl Fn() -> I + Sync,
) -> Vec<Filled> {
    for_each_buffer(setups, |percent| {
        let mut feeding = Feeding::new(shape, setups, percent, Keeps::Counts);
        stream().take(shape.tokens as usize).for_each(|key| feeding.insert(key));
        feeding.finish()
    })
}

/// Inserts the tokens of a stream. After the first part of them come queries for the keys of another.
pub fn query<I: Iterator<Item = u64>, A: Iterator<Item = u64>>(
    shape: Shape,
    setups: &[TableSetup],
    stream: impl Fn() -> I + Sync,
    asked: impl Fn() -> A + Sync,
) -> Vec<Queried> {
    for_each_buffer(setups, |percent| {
        let mut feeding = Feeding::new(shape, setups, percent, Keeps::Keys);
        let mut all: Vec<Queried> =
            feeding.tables.iter().map(|it| Queried::new(it.setup)).collect();
        let each = ((shape.tokens - shape.tokens_before_queries) / shape.queries.max(1)).max(1);
        let mut asked = asked();
        for (number, key) in (0..shape.tokens).zip(stream()) {
            feeding.insert(key);
            let since = number.checked_sub(shape.tokens_before_queries);
            if since.is_some_and(|since| since % each == 0) {
                let key = asked.next().expect("it has no end");
                feeding.ask(shape, key, &mut all);
            }
        }
        all
    })
}

fn pages_of_data(table: &dyn Design, key: u64) -> u64 {
    let search = table.data().search(key);
    search.pages + search.overflow_pages
}

impl Queried {
    fn new(setup: TableSetup) -> Self {
        let (reads, tape) = (OpCounts::default(), Tape::default());
        Self { setup, queries: 0, found: 0, reads, data_pages: 0, tape }
    }

    /// Adds a query; one of `each` is kept for drives.
    fn add(&mut self, reads: &Record, is_found: bool, each: u64) {
        if self.queries.is_multiple_of(each) {
            reads.put_on(&mut self.tape, Act::Lookup);
        }
        self.queries += 1;
        self.found += u64::from(is_found);
        self.reads.blocks += reads.counts.blocks;
        self.reads.pages += reads.counts.pages;
    }

    /// Returns a sum over all queries as the mean of one.
    #[must_use]
    pub fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.queries.max(1) as f64
    }

    /// Returns the mean time of a query on a drive, in milliseconds.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if there is no such drive.
    pub fn mean_ms(&self, drive: FlashDrive) -> Result<f64> {
        let mut ssd = drive.ssd(self.tape.page_count())?;
        Ok(Player::single(0).play(&self.tape, &mut ssd).all(0).mean_ms())
    }
}

/// An SSD of the paper's Table 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashDrive {
    /// Its name in the paper.
    pub name: &'static str,
    preset: &'static str,
}

impl FlashDrive {
    /// Intel, 40 GB.
    pub const MLC_1: Self = Self { name: "MLC-1", preset: "mlc-1-paper" };
    /// Intel, 80 GB.
    pub const MLC_2: Self = Self { name: "MLC-2", preset: "mlc-2-paper" };
    /// Intel, 32 GB.
    pub const SLC: Self = Self { name: "SLC", preset: "slc-paper" };
    /// All drives.
    pub const ALL: [Self; 3] = [Self::MLC_1, Self::MLC_2, Self::SLC];

    /// Creates the drive, written once from the first page to the last, with the fewest blocks for those
    /// pages.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if there is no such drive.
    pub fn ssd(self, pages: u64) -> Result<Ssd> {
        self.build(pages).map_err(|source| Error::Drive {
            preset: self.preset,
            times: 1,
            source: Box::new(source),
        })
    }

    fn build(self, pages: u64) -> std::result::Result<Ssd, PresetError> {
        let Machine::Ssd(mut spec) = vary::machine(self.preset)? else {
            unreachable!("the paper has SSDs only")
        };
        let each = (spec.page_count() / u64::from(spec.flash.blocks)).max(1);
        // An eighth more, for the rounding of the translation layer.
        let blocks = (pages + pages / 8).div_ceil(each).max(BLOCKS_MIN);
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        spec.flash.blocks = blocks.min(spec.flash.blocks);
        Ok(Ssd::new(spec, Fill::Sequential)?)
    }

    /// Plays operations, on a drive that is [`LARGER_TIMES`] as large as their pages: returns seconds, and
    /// erases.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if there is no such drive.
    pub fn play(self, record: &Record) -> Result<(f64, u64)> {
        self.play_after(record.pages() * larger_times(), &Record::default(), record)
    }

    /// Plays operations on a drive of `pages` pages, after other operations, which do not count.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if there is no such drive.
    pub fn play_after(self, pages: u64, before: &Record, record: &Record) -> Result<(f64, u64)> {
        let [mut first, mut then] = [Tape::default(), Tape::default()];
        before.put_on(&mut first, Act::Insert);
        record.put_on(&mut then, Act::Insert);
        let mut ssd = self.ssd(pages)?;
        let _ = Player::single(0).play(&first, &mut ssd);
        let erases = ssd.counters().ftl.erases;
        let played = Player::single(0).play(&then, &mut ssd);
        Ok((played.elapsed_ns as f64 / 1e9, ssd.counters().ftl.erases - erases))
    }

    /// Returns the milliseconds of one request for a block or a page.
    ///
    /// # Errors
    /// Fails with [`Error::Drive`] if there is no such drive.
    pub fn request_ms(self, kind: RequestKind, is_block: Whole) -> Result<f64> {
        let mut record = Record::default();
        match is_block {
            Whole::Block => record.block(kind, 0),
            Whole::Page => record.page(kind, 0),
        }
        Ok(self.play(&record)?.0 * 1e3)
    }
}

/// The extent of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// All pages of a block.
    Block,
    /// One page.
    Page,
}
