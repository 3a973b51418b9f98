//! Asynchronous writes and reads at a depth, in the phases of kvbench: insert all, overwrite, read, and a mix.

use crate::config::Config;
use crate::measure::{Measure, RunReport};
use crate::options::{RetrieveOptions, StoreOptions};
use crate::queue::{Command, CommandQueue};
use crate::space::KeySpace;
use crate::{Error, Result, ResultCode};

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BenchPlan {
    /// The number of pairs.
    pub pairs: u64,
    /// The number of bytes of each key: at least 8.
    pub key_bytes: usize,
    /// The number of bytes of each value.
    pub value_bytes: usize,
    /// The number of commands in flight.
    pub depth: usize,
    /// The number of commands of the reads and of the mix; `None` for as many as pairs.
    pub commands: Option<u64>,
    /// The percentage of reads in the mix.
    pub read_percent: u64,
    /// The seed of the choice of keys.
    pub seed: u64,
}

impl Default for BenchPlan {
    /// Returns the shape of kvbench: keys of 16 bytes, values of 4 KiB, 64 commands in flight, half of them reads.
    fn default() -> Self {
        Self {
            pairs: 10_000,
            key_bytes: 16,
            value_bytes: 4096,
            depth: 64,
            commands: None,
            read_percent: 50,
            seed: 1,
        }
    }
}

/// A part of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Insert,
    Update,
    Read,
    Mix,
    Absent,
}

const PHASES: [(Phase, &str); 5] = [
    (Phase::Insert, "insert"),
    (Phase::Update, "update"),
    (Phase::Read, "read"),
    (Phase::Mix, "mix"),
    (Phase::Absent, "read absent"),
];

/// A callback that gets the number of commands done so far, and returns whether the run continues.
pub type Watch<'w> = dyn FnMut(u64) -> bool + 'w;

impl BenchPlan {
    fn check(&self, drive: &Config) -> Result<()> {
        let refuse = |what, reason| Err(Error::Param { what, reason });
        if self.pairs == 0 {
            return refuse("pairs", "0; give one or more");
        }
        if self.key_bytes < 8 {
            return refuse("key bytes", "a key of a load has 8 bytes or more");
        }
        if self.read_percent > 100 {
            return refuse("read percent", "it must be from 0 to 100");
        }
        // The checks precede the allocation of memory for either.
        let (min, max) = (drive.key_bytes_min.into(), drive.key_bytes_max.into());
        if self.key_bytes > max {
            return Err(Error::KeyLength { found: self.key_bytes, min, max });
        }
        let (found, max) = (self.value_bytes as u64, drive.value_bytes_max.into());
        if found > max {
            return Err(Error::ValueLength { found, max });
        }
        Ok(())
    }

    fn key(&self, number: u64) -> Vec<u8> {
        let mut key = mix(number).to_be_bytes().to_vec();
        key.resize(self.key_bytes, b'k');
        key
    }

    fn value(&self, number: u64) -> Vec<u8> {
        let word = mix(number ^ self.seed).to_le_bytes();
        word.iter().copied().cycle().take(self.value_bytes).collect()
    }

    fn store(&self, number: u64) -> Command {
        let (key, value) = (self.key(number), self.value(number));
        Command::Store { key, value, options: StoreOptions::default() }
    }

    fn retrieve(&self, number: u64) -> Command {
        Command::Retrieve { key: self.key(number), options: RetrieveOptions::default() }
    }

    fn command(&self, phase: Phase, at: u64) -> Command {
        let random = mix(at ^ self.seed.rotate_left(32) ^ (phase as u64) << 56);
        let number = random % self.pairs;
        match phase {
            Phase::Insert => self.store(at),
            Phase::Update => self.store(number),
            Phase::Read => self.retrieve(number),
            Phase::Mix if (random >> 32) % 100 < self.read_percent => self.retrieve(number),
            Phase::Mix => self.store(number),
            Phase::Absent => self.retrieve(self.pairs + number),
        }
    }

    /// Runs the load in a key space: stores all pairs, then overwrites, reads and mixes at random, and reads absent
    /// keys. Ends early, with what was done, when `watch` returns false.
    ///
    /// # Errors
    /// An invalid plan, a full drive, a failed read or write.
    pub fn run(&self, space: &KeySpace, watch: &mut Watch<'_>) -> Result<Vec<RunReport>> {
        self.check(space.drive().config())?;
        let (mut reports, mut done) = (Vec::new(), 0);
        for (phase, name) in PHASES {
            let (report, goes_on) = self.run_phase(space, (phase, name), &mut done, watch)?;
            reports.push(report);
            if !goes_on {
                break;
            }
        }
        Ok(reports)
    }

    fn run_phase(
        &self,
        space: &KeySpace,
        (phase, name): (Phase, &str),
        done: &mut u64,
        watch: &mut Watch<'_>,
    ) -> Result<(RunReport, bool)> {
        let count = if phase == Phase::Insert { None } else { self.commands };
        let count = count.unwrap_or(self.pairs);
        let mut measure = Measure::start(space.drive(), name)?;
        let mut queue = CommandQueue::new(space, self.depth)?;
        for at in 0..count {
            queue.submit(self.command(phase, at), ())?;
            if queue.pending() == self.depth || at + 1 == count {
                let before = measure_all(&mut queue, phase, &mut measure)?;
                *done += before;
                if !watch(*done) {
                    return Ok((measure.end(space.drive())?, false));
                }
            }
        }
        match phase {
            // Later reads must find their pairs on flash.
            Phase::Insert => space.drive().flush()?,
            // Writes that wait in RAM count for the run that stored them.
            _ => space.drive().sync()?,
        }
        Ok((measure.end(space.drive())?, true))
    }
}

/// Polls all completions; a failed command ends the load.
fn measure_all(queue: &mut CommandQueue<()>, phase: Phase, measure: &mut Measure) -> Result<u64> {
    let completions = queue.poll(usize::MAX);
    let count = completions.len() as u64;
    for completion in completions {
        measure.note(completion.latency_ns);
        match completion.result {
            Err(error) if phase == Phase::Absent && error.code() == ResultCode::KeyNotExist => {}
            result => drop(result?),
        }
    }
    Ok(count)
}

/// Mixes a number by a bijection that spreads numbers.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
