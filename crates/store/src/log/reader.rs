//! Reading the log after a crash: the chain of blocks from the tail on, and the reason why it ends.
//!
//! A log ends where no block continues it. The cause is a torn tail, left by every power cut, or damage; a checksum
//! alone cannot distinguish them. But a later block that was sealed when the missing place was durable proves damage,
//! and so does the superblock. A block that names a newer superblock proves that this one is stale.

use nandex_device::{Op, OpKind, PAGE_BYTES, PageBuf, Queue};

use super::format::{Block, BlockHeader, BlockLabel, Flaw, RawBlock};
use super::region::LogRegion;
use super::{AnchorSource, LogAnchor, LogEnd, Lsn};
use crate::mutants::{Barrier, is_on};
use crate::{Error, Result, StructureId};

/// The name of damage in the log.
const WHAT: &str = "log block";

/// The number of blocks that are read at once; a block that straddles two reads is read twice.
const WINDOW_BLOCKS: u64 = 8;

/// A callback for replayed entries: the start of their block, their structure, the size of each, and all entries of a
/// group, one after another.
pub type Visit<'a> = dyn FnMut(Lsn, StructureId, usize, &[u8]) -> Result<()> + 'a;

/// A block, or the reason why there is none.
type Checked<'a> = std::result::Result<Block<'a>, Flaw>;

/// Reads the entries from `anchor.tail` up to `until`, a place that an earlier [`replay`] has reached. Ignores what is
/// written after that place meanwhile.
///
/// # Errors
/// As [`replay`]; [`Error::Corrupt`] also when the log ends before `until`.
pub fn replay_until(
    region: &LogRegion,
    volume_id: u128,
    anchor: LogAnchor,
    until: Lsn,
    visit: &mut Visit<'_>,
) -> Result<()> {
    region.check()?;
    let mut window = Window::new(region)?;
    let mut chain = Chain::new(region, volume_id, anchor);
    while chain.end.next < until {
        let bytes = window.at(chain.end.next.0)?;
        match chain.next(bytes) {
            Ok(block) => visit_block(region, block, visit)?,
            Err(flaw) => return chain.check_end(&mut window, flaw),
        }
    }
    Ok(())
}

/// Reads all entries from `anchor.tail` to the log's end, in order, and finds that end. An error of `visit`
/// ends the reading.
///
/// Reads the region once, since it searches past the end for proof of damage. Fails unless everything before
/// `anchor.synced` is present. After it the last durable blocks can be lost unnoticed only if damage hit them together
/// with every block that was sealed after their sync.
///
/// # Errors
/// [`Error::Corrupt`] for durable blocks that are damaged, [`Error::Stale`] if one names a newer superblock than the
/// anchor's, [`Error::Config`] for an impossible region or place, the device's failure, and whatever `visit` returns.
pub fn replay(
    region: &LogRegion,
    volume_id: u128,
    anchor: LogAnchor,
    visit: &mut Visit<'_>,
) -> Result<LogEnd> {
    region.check()?;
    region.check_place("log_tail", anchor.tail)?;
    region.check_place("log_synced", anchor.synced)?;
    let mut window = Window::new(region)?;
    let mut chain = Chain::new(region, volume_id, anchor);
    let flaw = loop {
        let bytes = window.at(chain.end.next.0)?;
        match chain.next(bytes) {
            Ok(block) => visit_block(region, block, visit)?,
            Err(flaw) => break flaw,
        }
    };
    chain.check_end(&mut window, flaw)?;
    Ok(chain.end)
}

fn visit_block(region: &LogRegion, block: Block<'_>, visit: &mut Visit<'_>) -> Result<()> {
    let lsn = block.header().lsn;
    for group in block.groups() {
        let page = region.page(lsn.0);
        let group = group.map_err(|flaw| Error::corrupt(WHAT, page, "whole groups", flaw))?;
        visit(lsn, group.structure, group.entry_bytes, group.entries)?;
    }
    Ok(())
}

/// The blocks that follow one another from the tail on.
struct Chain<'a> {
    region: &'a LogRegion,
    volume_id: u128,
    anchor: LogAnchor,
    end: LogEnd,
    first: bool,
    /// The newest superblock that a block of the chain names, and that block's place, if it is newer than the anchor's.
    newest: Option<(u64, Lsn)>,
}

impl<'a> Chain<'a> {
    fn new(region: &'a LogRegion, volume_id: u128, anchor: LogAnchor) -> Self {
        let next = Lsn(region.start_from(anchor.tail.0));
        let end = LogEnd { next, prev_crc: 0, epoch: 0 };
        Self { region, volume_id, anchor, end, first: true, newest: None }
    }

    /// Adds the block at the chain's end, if it continues the chain.
    fn next<'b>(&mut self, bytes: &'b [u8]) -> Checked<'b> {
        let block = self.whole(bytes, self.end.next)?;
        let header = block.header();
        if header.epoch < self.epoch_min(header.lsn) && is_on(Barrier::BlockEpoch) {
            return Err(Flaw::Stale { epoch: header.epoch });
        }
        // The tail's predecessor is gone: place, volume and session prove its block.
        let chained = self.first || header.prev_crc == self.end.prev_crc;
        if !chained && is_on(Barrier::BlockChain) {
            return Err(Flaw::Chain);
        }
        let next = self.region.start_from(header.lsn.0 + block.block_bytes() as u64);
        self.end = LogEnd { next: Lsn(next), prev_crc: block.crc(), epoch: header.epoch };
        self.first = false;
        self.note_superblock(header);
        Ok(block)
    }

    /// Returns the newer superblock that a block names.
    fn newer_superblock(&self, header: &BlockHeader) -> Option<u64> {
        match self.anchor.source {
            AnchorSource::Superblock(known) => header.newer_superblock(known),
            AnchorSource::Unnamed | AnchorSource::Stale => None,
        }
    }

    fn note_superblock(&mut self, header: BlockHeader) {
        let newer = self.newer_superblock(&header).map(|generation| (generation, header.lsn));
        self.newest = self.newest.max(newer);
    }

    fn whole<'b>(&self, bytes: &'b [u8], lsn: Lsn) -> Checked<'b> {
        let block_bytes_max = self.region.block_bytes;
        let label = BlockLabel { volume_id: self.volume_id, lsn, block_bytes_max };
        RawBlock::new(bytes).check(label)
    }

    /// The oldest session that can have written a block at `lsn`.
    fn epoch_min(&self, lsn: Lsn) -> u64 {
        let anchored = if lsn >= self.anchor.synced { self.anchor.epoch } else { 0 };
        self.end.epoch.max(anchored)
    }

    /// Distinguishes a torn tail from damage, after no block was found at the end because of `flaw`.
    fn check_end(&mut self, window: &mut Window<'_>, flaw: Flaw) -> Result<()> {
        let end = self.end.next;
        let witness = self.scan(window)?.filter(|_| is_on(Barrier::ReplayHearsWitness));
        self.refuse_stale()?;
        self.end.epoch = self.end.epoch.max(self.anchor.epoch);
        if self.anchor.source == AnchorSource::Stale {
            return Ok(());
        }
        let damage = |proof: String| {
            let expected = format!("the block of {end}, which was durable as {proof} tells");
            Error::corrupt(WHAT, self.region.page(end.0), expected, flaw)
        };
        if end < self.region_start(self.anchor.synced) && is_on(Barrier::ReplayHearsSuperblock) {
            return Err(damage("the superblock".into()));
        }
        if let Some(witness) = witness {
            return Err(damage(format!("the block of {witness}")));
        }
        Ok(())
    }

    fn refuse_stale(&self) -> Result<()> {
        let AnchorSource::Superblock(found) = self.anchor.source else { return Ok(()) };
        let newest = self.newest.filter(|_| is_on(Barrier::StaleSuperblockRefused));
        newest.map_or(Ok(()), |(newest, lsn)| {
            let page = self.region.page(lsn.0);
            Err(Error::Stale { found, newest, what: WHAT, page })
        })
    }

    fn region_start(&self, lsn: Lsn) -> Lsn {
        Lsn(self.region.start_from(lsn.0))
    }

    /// Searches the pages past the end. Finds a block that was sealed when the end's place was durable, notes blocks
    /// of any lap that name a newer superblock, and the newest session past a stale one.
    fn scan(&mut self, window: &mut Window<'_>) -> Result<Option<Lsn>> {
        let lap_end = self.region.start_from(self.anchor.tail.0) + self.region.bytes();
        let is_stale = self.anchor.source == AnchorSource::Stale;
        let mut witness = None;
        for lsn in (self.end.next.0..lap_end).step_by(PAGE_BYTES) {
            let is_wanted = |header: &BlockHeader| {
                self.region.page(header.lsn.0) == self.region.page(lsn)
                    && (is_stale
                        || self.is_witness(header, lsn)
                        || self.newer_superblock(header).is_some())
            };
            let block = RawBlock::new(window.at(lsn)?);
            let found = block.find(self.volume_id, self.region.block_bytes, is_wanted);
            let Some(header) = found else { continue };
            self.note_superblock(header);
            if is_stale {
                self.end.epoch = self.end.epoch.max(header.epoch);
            } else if self.is_witness(&header, lsn) {
                witness.get_or_insert(header.lsn);
            }
        }
        Ok(witness)
    }

    /// Returns whether a block at `lsn` past the end proves that the end's place was durable.
    fn is_witness(&self, header: &BlockHeader, lsn: u64) -> bool {
        let end = self.end.next;
        header.lsn == Lsn(lsn)
            && header.lsn > end
            && header.synced > end
            && header.epoch >= self.epoch_min(header.lsn)
    }
}

/// Reads the region in large chunks.
struct Window<'a> {
    region: &'a LogRegion,
    queue: Box<dyn Queue>,
    start: u64,
    buf: Option<PageBuf>,
}

impl<'a> Window<'a> {
    fn new(region: &'a LogRegion) -> Result<Self> {
        Ok(Self { region, queue: region.device.queue(1)?, start: 0, buf: None })
    }

    /// Returns the bytes from `lsn` on: enough for a largest block, or all up to the lap's end, and perhaps more.
    fn at(&mut self, lsn: u64) -> Result<&[u8]> {
        let wanted = self.region.block().min(self.region.left_in_part(lsn));
        if !self.holds(lsn, wanted) {
            self.load(lsn)?;
        }
        let buf = self.buf.as_ref().expect("the window was loaded");
        let from = usize::try_from(lsn - self.start).expect("the window holds the place");
        Ok(&buf[from..])
    }

    fn holds(&self, lsn: u64, wanted: u64) -> bool {
        let bytes = self.buf.as_ref().map_or(0, |buf| buf.len() as u64);
        lsn >= self.start && lsn + wanted <= self.start + bytes
    }

    fn load(&mut self, lsn: u64) -> Result<()> {
        let bytes = (WINDOW_BLOCKS * self.region.block()).min(self.region.left_in_part(lsn));
        let pages = usize::try_from(bytes).expect("a few blocks fit memory") / PAGE_BYTES;
        let reused = self.buf.take().filter(|buf| buf.pages() == pages);
        let buf = reused.unwrap_or_else(|| PageBuf::zeroed(pages));
        let page = self.region.page(lsn);
        self.queue.push(Op { token: lsn, kind: OpKind::Read, page, buf })?;
        let mut done = Vec::with_capacity(1);
        self.queue.wait(1, &mut done)?;
        let completion = done.pop().expect("wait(1) gives at least one completion");
        completion.result?;
        self.start = lsn;
        self.buf = Some(completion.buf);
        Ok(())
    }
}
