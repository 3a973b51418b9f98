//! One key at a time from many threads: an engine that makes one stream of them.
//!
//! A thread that calls [`Table::get`](crate::Table::get) waits for its own read with a queue of its own,
//! and pays for a system call and a switch each time. Where many threads ask for one key each (the paper's
//! 32 threads, a server's connections), a few engine threads take all that wait and put them into their
//! streams: the device's queue stays full, reads are spread over its channels across callers, and a caller
//! sleeps until its answer is there.
//!
//! ```text
//!   caller --- key ---> +---------+ --> engine thread 0: stream -> the device's queue
//!   caller --- key ---> | waiting |
//!   caller <-- value -- +---------+ --> engine thread 1: stream -> the device's queue
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

use crate::api::{LookupStream, Table, Value};
use crate::{Error, Result};

/// Looks up single keys for many threads at once.
///
/// Dropping it waits for the lookups on their way.
///
/// ```
/// use std::sync::Arc;
/// use nandex::slicehash::Config;
/// use nandex::{LookupEngine, SliceHash, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Arc::new(SliceHash::create(&volume, "seen", Config::tiny())?);
/// table.insert_u64(17, 4)?;
/// let engine = LookupEngine::start(Arc::clone(&table), 1)?;
/// std::thread::scope(|scope| {
///     for key in 0..32u64 {
///         let engine = &engine;
///         scope.spawn(move || {
///             let found = engine.get(&key.to_le_bytes()).unwrap();
///             assert_eq!(found.is_some(), key == 17);
///         });
///     }
/// });
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct LookupEngine<T: Table + 'static> {
    table: Arc<T>,
    desk: Arc<Desk>,
    threads: Vec<JoinHandle<()>>,
}

/// Where callers leave keys.
#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Request>,
    stop: bool,
}

/// A key, and where its caller waits for the answer.
#[derive(Debug)]
struct Request {
    key: Vec<u8>,
    caller: Arc<Caller>,
}

#[derive(Debug, Default)]
struct Caller {
    reply: Mutex<Option<Reply>>,
    changed: Condvar,
}

#[derive(Debug)]
enum Reply {
    Found(Option<Value>),
    /// The stream has failed, with this lookup or another one: the caller asks for itself.
    AskYourself,
}

impl<T: Table + 'static> LookupEngine<T> {
    /// Starts so many threads over a table. One fills the queue of most devices; each uses a core while
    /// lookups come in.
    ///
    /// # Errors
    /// [`Error::Config`] for no thread, or one that cannot start.
    pub fn start(table: Arc<T>, threads: usize) -> Result<Self> {
        let refuse = |reason: String| Error::Config { field: "threads", reason };
        if threads == 0 {
            return Err(refuse("0 does not do; an engine needs at least one thread".into()));
        }
        let mut engine = Self { table, desk: Arc::default(), threads: Vec::new() };
        for number in 0..threads {
            let (table, desk) = (Arc::clone(&engine.table), Arc::clone(&engine.desk));
            let run = move || work(&*table, &desk);
            let thread = Builder::new().name(format!("nandex-lookup-{number}")).spawn(run);
            let failed = |error| refuse(format!("thread {number} cannot start: {error}"));
            engine.threads.push(thread.map_err(failed)?);
        }
        Ok(engine)
    }

    /// The value under `key`. Waits for the read that this takes, among those of other callers.
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get).
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Error::check_width("key", key, self.table.key_bytes())?;
        let caller = Arc::new(Caller::default());
        let request = Request { key: key.to_vec(), caller: Arc::clone(&caller) };
        self.desk.lock().requests.push_back(request);
        self.desk.changed.notify_one();
        match caller.wait() {
            Reply::Found(value) => Ok(value),
            Reply::AskYourself => self.table.get(key),
        }
    }
}

impl<T: Table + 'static> Drop for LookupEngine<T> {
    fn drop(&mut self) {
        self.desk.lock().stop = true;
        self.desk.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic over there has told its own message.
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no holder of the desk's lock panics")
    }

    /// Takes what waits, at most so many; with `patience` waits for the first. Nothing at all means stop.
    fn take(&self, count_max: usize, patience: bool) -> Option<Vec<Request>> {
        let mut waiting = self.lock();
        while patience && waiting.requests.is_empty() && !waiting.stop {
            waiting = self.changed.wait(waiting).expect("no holder of the desk's lock panics");
        }
        if waiting.stop && waiting.requests.is_empty() {
            return None;
        }
        let count = waiting.requests.len().min(count_max);
        Some(waiting.requests.drain(..count).collect())
    }
}

impl Caller {
    fn wait(&self) -> Reply {
        let mut reply = self.reply.lock().expect("no holder of a reply panics");
        loop {
            if let Some(reply) = reply.take() {
                return reply;
            }
            reply = self.changed.wait(reply).expect("no holder of a reply panics");
        }
    }

    fn answer(&self, reply: Reply) {
        *self.reply.lock().expect("no holder of a reply panics") = Some(reply);
        self.changed.notify_one();
    }
}

/// Callers whose lookups are on their way, by token. Whoever is left when it goes, and be it by a panic,
/// asks for itself.
#[derive(Default)]
struct OnTheWay {
    callers: Vec<Option<Arc<Caller>>>,
    free: Vec<usize>,
}

impl OnTheWay {
    fn add(&mut self, caller: Arc<Caller>) -> u64 {
        let token = self.free.pop().unwrap_or_else(|| {
            self.callers.push(None);
            self.callers.len() - 1
        });
        self.callers[token] = Some(caller);
        token as u64
    }

    fn answer(&mut self, token: u64, value: Option<Value>) {
        let token = usize::try_from(token).expect("tokens are indices");
        let caller = self.callers[token].take().expect("a token is answered once");
        self.free.push(token);
        caller.answer(Reply::Found(value));
    }
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.callers.iter().flatten().for_each(|caller| caller.answer(Reply::AskYourself));
    }
}

/// Requests that one thread takes at a time, so that others get some too.
const TAKE_MAX: usize = 64;

/// An engine thread: one stream after another, each until it fails.
fn work(table: &dyn Table, desk: &Desk) {
    loop {
        let mut on_the_way = OnTheWay::default();
        match serve(table, desk, &mut on_the_way) {
            Ok(()) => return,
            // Whoever waits asks for itself, and hears what is wrong.
            Err(_) => drop(on_the_way),
        }
    }
}

fn serve(table: &dyn Table, desk: &Desk, on_the_way: &mut OnTheWay) -> Result<()> {
    // Not before somebody asks: a stream that cannot be opened would be tried for ever.
    let mut stream: Option<Box<dyn LookupStream + '_>> = None;
    loop {
        let pending = stream.as_ref().map_or(0, |stream| stream.pending());
        let Some(requests) = desk.take(TAKE_MAX, pending == 0) else {
            if pending == 0 {
                return Ok(());
            }
            if let Some(stream) = &mut stream {
                answer_one(&mut **stream, on_the_way, true)?;
            }
            continue;
        };
        let is_quiet = requests.is_empty();
        let tokens: Vec<_> = requests
            .into_iter()
            .map(|Request { key, caller }| (key, on_the_way.add(caller)))
            .collect();
        let stream = match &mut stream {
            Some(stream) => stream,
            None => stream.insert(table.stream()?),
        };
        for (key, token) in tokens {
            stream.push(&key, token)?;
        }
        while answer_one(&mut **stream, on_the_way, false)? {}
        if is_quiet {
            answer_one(&mut **stream, on_the_way, true)?;
        }
    }
}

/// Hands over one answer; tells whether there was one.
fn answer_one(
    stream: &mut dyn LookupStream,
    on_the_way: &mut OnTheWay,
    wait: bool,
) -> Result<bool> {
    let answer = if wait { stream.pull()? } else { stream.poll()? };
    let Some((token, value)) = answer else { return Ok(false) };
    on_the_way.answer(token, value);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use nandex_device::{Device, MemoryDevice};
    use nandex_store::{Volume, VolumeOptions};

    use super::*;
    use crate::SliceHash;
    use crate::slicehash::Config;

    fn table(device: &MemoryDevice) -> Arc<SliceHash> {
        let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
        let table = SliceHash::create(&volume, "t", Config::tiny()).unwrap();
        for key in 0..6000 {
            table.insert_u64(key, key * 3).unwrap();
        }
        Arc::new(table)
    }

    #[test]
    fn many_threads_get_each_its_own_answer() {
        let table = table(&MemoryDevice::new());
        let engine = LookupEngine::start(Arc::clone(&table), 2).unwrap();
        std::thread::scope(|scope| {
            for caller in 0..16u64 {
                let engine = &engine;
                scope.spawn(move || {
                    for key in (caller..9000).step_by(16) {
                        let found = engine.get(&key.to_le_bytes()).unwrap();
                        let number = found.map(|v| u64::from_le_bytes(v[..].try_into().unwrap()));
                        assert_eq!(number, (key < 6000).then_some(key * 3), "key {key}");
                    }
                });
            }
        });
        drop(engine);
        let stats = table.stats();
        assert_eq!((stats.hits, stats.misses), (6000, 3000));
    }

    #[test]
    fn an_error_is_told_to_each_caller_and_the_engine_goes_on() {
        let device = MemoryDevice::new();
        let table = table(&device);
        let engine = LookupEngine::start(Arc::clone(&table), 1).unwrap();
        assert!(matches!(engine.get(&[1]), Err(Error::Width { .. })));
        table.flush().unwrap();
        let key = 3u64.to_le_bytes();
        assert!(engine.get(&key).unwrap().is_some());
        // Every page is damaged, and whole again later.
        let whole = device.image();
        let pages = device.page_count();
        for page in 0..pages {
            let mut buf = nandex_device::PageBuf::zeroed(1);
            buf.fill(0xee);
            device.write(nandex_device::PageId(page), buf).unwrap();
        }
        let failed = (0..6000u64).filter(|key| engine.get(&key.to_le_bytes()).is_err()).count();
        assert!(failed > 3000, "{failed}");
        for (page, bytes) in (0..).zip(whole.chunks_exact(nandex_device::PAGE_BYTES)) {
            let mut buf = nandex_device::PageBuf::zeroed(1);
            buf.copy_from_slice(bytes);
            device.write(nandex_device::PageId(page), buf).unwrap();
        }
        assert!((0..6000u64).all(|key| engine.get(&key.to_le_bytes()).unwrap().is_some()));
    }

    #[test]
    fn an_engine_without_threads_is_refused() {
        let table = table(&MemoryDevice::new());
        assert!(LookupEngine::start(table, 0).is_err());
    }
}
