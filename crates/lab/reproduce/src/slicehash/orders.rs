//! Reads on channels in the orders of section 7.3: at random, skewed, and one channel after another.

use nandex::raw::device::PageId;
use nandex::raw::store::schedule::{Channels, SequentialWrite};
use nandex_sim::RequestKind;
use nandex_sim::workload::SplitMix64;

use crate::tape::{Act, Step, Tape};

/// Requests of a batch.
const BATCH: usize = 32;

/// The channels of the reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Any channel.
    Random,
    /// Of 32 reads, this many go to one channel, which is another each time; the others are spread evenly.
    Skewed(usize),
    /// This many reads go to the first channel, as many to the next one, and so on.
    Ordered(usize),
    /// All reads go to the first channel.
    Same,
}

impl Order {
    /// Returns the channel of the n-th read.
    fn channel(self, n: usize, count: u64, rng: &mut SplitMix64) -> u64 {
        match self {
            Self::Random => rng.below(count),
            Self::Skewed(skew) => {
                let (batch, within) = (n / BATCH, n % BATCH);
                let hot = SplitMix64::new(batch as u64).below(count);
                if within < skew { hot } else { (hot + within as u64) % count }
            }
            Self::Ordered(run) => (n / run) as u64 % count,
            Self::Same => 0,
        }
    }

    /// Returns lookups in this order, each of which reads one of these pages, whose channels are those of
    /// slicetables.
    ///
    /// # Panics
    /// Panics if there is a channel without a page.
    pub fn tape(self, pages: &[u64], channels: Channels, lookups: usize, seed: u64) -> Tape {
        let mut by_channel = vec![Vec::new(); channels.count() as usize];
        for page in pages {
            let channel = channels.channel(PageId(*page), SequentialWrite::at(PageId(0)));
            by_channel[channel as usize].push(*page);
        }
        let mut rng = SplitMix64::stream(seed, 4);
        let mut tape = Tape::default();
        for n in 0..lookups {
            let pages = &by_channel[self.channel(n, by_channel.len() as u64, &mut rng) as usize];
            let page = pages[rng.below(pages.len() as u64) as usize];
            tape.push(Act::Lookup, &[Step { kind: RequestKind::Read, page, pages: 1, wave: 0 }]);
        }
        tape
    }
}

/// Returns the same operations, whose lookups read other pages: each on the channel that `to` returns for its
/// own. These are pages that some lookup of the tape reads.
///
/// # Panics
/// Panics if no lookup reads a page of such a channel.
pub fn on_channels(tape: &Tape, channels: Channels, seed: u64, to: impl Fn(u32) -> u32) -> Tape {
    let channel = |page| channels.channel(PageId(page), SequentialWrite::at(PageId(0)));
    let mut by_channel = vec![Vec::new(); channels.count() as usize];
    let lookups = tape.operations().filter(|(act, _)| *act == Act::Lookup);
    lookups.flat_map(|it| it.1).for_each(|it| by_channel[channel(it.page) as usize].push(it.page));
    let mut rng = SplitMix64::stream(seed, 6);
    let mut moved = Tape::default();
    for (act, steps) in tape.operations() {
        let mut moved_step = |step: &Step| {
            let pages = &by_channel[to(channel(step.page)) as usize];
            Step { page: pages[rng.below(pages.len() as u64) as usize], ..*step }
        };
        match act {
            Act::Lookup => {
                let steps: Vec<Step> = steps.iter().map(&mut moved_step).collect();
                moved.push(act, &steps);
            }
            Act::Insert => moved.push(act, steps),
        }
    }
    moved
}

/// Returns the first pages that the lookups of a tape read.
pub fn pages_read(tape: &Tape) -> Vec<u64> {
    let steps = tape.operations().filter(|(act, _)| *act == Act::Lookup);
    steps.filter_map(|(_, steps)| steps.first()).map(|step| step.page).collect()
}
