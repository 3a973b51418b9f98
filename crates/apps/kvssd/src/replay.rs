//! The replay of a trace on a drive: its requests become commands in a queue.

use std::collections::BTreeMap;
use std::io::BufRead;

use nandex::raw::store::hash::{HashKind, KeyHasher};
use serde::Serialize;

use crate::bench::Watch;
use crate::measure::{Measure, RunReport};
use crate::options::{DeleteMissing, RetrieveOptions, StoreKind};
use crate::queue::{Command, CommandQueue, Completion, Outcome};
use crate::space::KeySpace;
use crate::trace::{TraceOperation, TraceReader, TraceRequest};
use crate::{Result, ResultCode};

/// The hash key for keys that the drive does not accept unchanged.
const KEY_HASH_KEY: u128 = 0x6b76_7373_6420_7265_706c_6179;

/// The options of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayPlan {
    /// The number of commands in flight.
    pub depth: usize,
    /// Whether a value is stored if a request does not find it, so that a trace of a cache fills the drive.
    pub fills: bool,
    /// The bytes of all values, in place of those of the trace.
    pub value_bytes: Option<u64>,
    /// The most requests.
    pub requests: Option<u64>,
}

impl Default for ReplayPlan {
    fn default() -> Self {
        Self { depth: 64, fills: false, value_bytes: None, requests: None }
    }
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReplayReport {
    /// The figures of all commands.
    pub run: RunReport,
    /// Requests by operation.
    pub requests: BTreeMap<&'static str, u64>,
    /// Requests that did not find their key.
    pub misses: u64,
    /// Stores of keys that were not found, if the replay fills.
    pub filled: u64,
    /// Values that were longer than the drive accepts, and were cut.
    pub cut_values: u64,
    /// Keys that the drive does not accept unchanged, and were hashed.
    pub hashed_keys: u64,
    /// Commands that were refused, by their code.
    pub refused: BTreeMap<&'static str, u64>,
    /// Whether the end of the trace was reached.
    pub is_whole: bool,
}

/// A command in progress.
#[derive(Clone, Debug)]
struct Asked {
    /// The pair to store if the key is absent.
    fill: Option<(Vec<u8>, usize)>,
}

struct Replay<'s> {
    plan: ReplayPlan,
    space: &'s KeySpace,
    queue: CommandQueue<Asked>,
    measure: Measure,
    report: ReplayReport,
    hasher: KeyHasher,
    value: Vec<u8>,
    total: u64,
}

impl ReplayPlan {
    /// Replays a trace in a key space. Requests come as fast as the drive answers, whatever their times. Ends early
    /// when `watch`, which gets the bytes read, returns false.
    ///
    /// A refusal is counted and does not end the run.
    ///
    /// # Errors
    /// The first line that does not parse, by its place; a failure of the device.
    pub fn run<R: BufRead>(
        &self,
        space: &KeySpace,
        trace: &mut TraceReader<R>,
        watch: &mut Watch<'_>,
    ) -> Result<ReplayReport> {
        let longest = space.drive().config().value_bytes_max as usize;
        let mut replay = Replay {
            plan: *self,
            space,
            queue: CommandQueue::new(space, self.depth)?,
            measure: Measure::start(space.drive(), "replay")?,
            report: ReplayReport::default(),
            hasher: KeyHasher::new(HashKind::Xxh3, KEY_HASH_KEY),
            value: vec![b'v'; longest],
            total: 0,
        };
        replay.report.is_whole = replay.ask_all(trace, watch)?;
        replay.poll()?;
        replay.report.run = replay.measure.end(space.drive())?;
        Ok(replay.report)
    }
}

impl Replay<'_> {
    /// Submits all requests; returns false if it was stopped, or the limit of requests was reached.
    fn ask_all<R: BufRead>(
        &mut self,
        trace: &mut TraceReader<R>,
        watch: &mut Watch<'_>,
    ) -> Result<bool> {
        while let Some(requests) = trace.next_requests()? {
            for request in requests {
                for _ in 0..request.count {
                    if self.plan.requests.is_some_and(|most| self.total >= most) {
                        return Ok(false);
                    }
                    self.total += 1;
                    self.ask(&request)?;
                }
            }
            if !watch(trace.bytes()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn ask(&mut self, request: &TraceRequest) -> Result<()> {
        let key = self.key(&request.key);
        let bytes = self.value_bytes(request);
        let fill = (self.plan.fills && request.operation == TraceOperation::Get)
            .then(|| (key.clone(), bytes));
        let store = |kind: StoreKind, key: Vec<u8>, value: &[u8]| Command::Store {
            key,
            value: value[..bytes].to_vec(),
            options: kind.into(),
        };
        let (name, command) = match request.operation {
            TraceOperation::Get => {
                ("get", Command::Retrieve { key, options: RetrieveOptions::default() })
            }
            TraceOperation::Put => ("put", store(StoreKind::Post, key, &self.value)),
            TraceOperation::Add => ("add", store(StoreKind::NoOverwrite, key, &self.value)),
            TraceOperation::Replace => ("replace", store(StoreKind::UpdateOnly, key, &self.value)),
            TraceOperation::Append => ("append", store(StoreKind::Append, key, &self.value)),
            TraceOperation::Exist => ("exist", Command::Exist { keys: vec![key] }),
            TraceOperation::Delete => {
                ("delete", Command::Delete { key, missing: DeleteMissing::Refuse })
            }
        };
        *self.report.requests.entry(name).or_default() += 1;
        self.submit(command, Asked { fill })
    }

    fn submit(&mut self, command: Command, asked: Asked) -> Result<()> {
        if self.queue.pending() >= self.plan.depth {
            self.poll()?;
        }
        self.queue.submit(command, asked)
    }

    /// Returns the drive's key for one of the trace.
    fn key(&mut self, key: &[u8]) -> Vec<u8> {
        if self.space.inner().check_key(key).is_ok() {
            return key.to_vec();
        }
        self.report.hashed_keys += 1;
        let hash = self.hasher.hash(key);
        let longest = usize::from(self.space.drive().config().key_bytes_max);
        let bytes = [hash.place.to_be_bytes(), hash.filter.to_be_bytes()].concat();
        bytes[..bytes.len().min(longest)].to_vec()
    }

    /// Returns the bytes of the value of a request.
    fn value_bytes(&mut self, request: &TraceRequest) -> usize {
        let wanted = self.plan.value_bytes.or(request.value_bytes).unwrap_or(0);
        let bytes = usize::try_from(wanted).unwrap_or(usize::MAX);
        let is_stored = !matches!(
            request.operation,
            TraceOperation::Get | TraceOperation::Exist | TraceOperation::Delete
        );
        if bytes > self.value.len() && (is_stored || self.plan.fills) {
            self.report.cut_values += 1;
        }
        bytes.min(self.value.len())
    }

    /// Takes all completions, and stores values of absent keys.
    fn poll(&mut self) -> Result<()> {
        let mut fills = Vec::new();
        for completion in self.queue.poll(usize::MAX) {
            fills.extend(self.take(completion)?);
        }
        for (key, bytes) in fills {
            if self.queue.pending() >= self.plan.depth {
                self.poll_fills()?;
            }
            let command = Command::Store {
                key,
                value: self.value[..bytes].to_vec(),
                options: Default::default(),
            };
            self.report.filled += 1;
            self.queue.submit(command, Asked { fill: None })?;
        }
        self.poll_fills()
    }

    fn poll_fills(&mut self) -> Result<()> {
        for completion in self.queue.poll(usize::MAX) {
            self.take(completion)?;
        }
        Ok(())
    }

    /// Counts a completion; returns the pair to store if its key was absent.
    fn take(&mut self, completion: Completion<Asked>) -> Result<Option<(Vec<u8>, usize)>> {
        self.measure.note(completion.latency_ns);
        let error = match completion.result {
            Err(error) => error,
            Ok(Outcome::Exist(there)) => {
                self.report.misses += there.iter().filter(|there| !**there).count() as u64;
                return Ok(None);
            }
            Ok(_) => return Ok(None),
        };
        match error.code() {
            ResultCode::KeyNotExist => {
                self.report.misses += 1;
                Ok(completion.context.fill)
            }
            ResultCode::SysIo => Err(error),
            code => {
                *self.report.refused.entry(code.name()).or_default() += 1;
                Ok(None)
            }
        }
    }
}
