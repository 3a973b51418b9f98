//! An engine that merges the single lookups of several threads into one stream.
//!
//! A thread that calls [`Table::get`](crate::Table::get) waits for its own read, and pays for a system call and a
//! context switch each time. If many threads look up one key each (the paper's 32 threads, a server's connections), a
//! few engine threads take all requests and put them into their streams. The device's queue stays full, reads are
//! spread over its channels across callers, and a caller sleeps until its answer arrives.
//!
//! ```text
//!   caller --- key ---> +----------+ --> engine thread 0: stream -> the device's queue
//!   caller --- key ---> | requests |
//!   caller <-- value -- +----------+ --> engine thread 1: stream -> the device's queue
//! ```

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use crate::api::{Table, Value};
use crate::{Error, Result};

/// Looks up single keys for several threads at once.
///
/// Dropping it waits for the lookups in progress.
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
    /// Dropping it ends the threads.
    requests: Option<Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
}

/// A key, and the channel for its answer. If the request is dropped, the caller does the lookup itself.
#[derive(Debug)]
struct Request {
    key: Vec<u8>,
    reply: SyncSender<Option<Value>>,
}

/// Requests that no engine thread has taken.
type RequestQueue = Mutex<Receiver<Request>>;

/// The maximum number of requests that one thread takes at a time, so that other threads get some too.
const TAKE_MAX: usize = 64;

impl<T: Table + 'static> LookupEngine<T> {
    /// Starts `threads` threads over a table. One fills the queue of most devices; each uses a core while lookups come
    /// in.
    ///
    /// # Errors
    /// [`Error::Config`] for zero threads, or if a thread cannot start.
    pub fn start(table: Arc<T>, threads: usize) -> Result<Self> {
        let refuse = |reason: String| Error::Config { field: "threads", reason };
        if threads == 0 {
            return Err(refuse("0 does not do; an engine needs at least one thread".into()));
        }
        let (requests, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut engine = Self { table, requests: Some(requests), threads: Vec::new() };
        for number in 0..threads {
            let (table, queue) = (Arc::clone(&engine.table), Arc::clone(&queue));
            let run = move || work(&*table, &queue);
            let thread = Builder::new().name(format!("nandex-lookup-{number}")).spawn(run);
            let failed = |error| refuse(format!("thread {number} cannot start: {error}"));
            engine.threads.push(thread.map_err(failed)?);
        }
        Ok(engine)
    }

    /// Returns the value of `key`. Waits for its read, along with those of other callers.
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get).
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Error::check_width("key", key, self.table.key_bytes())?;
        let (reply, answer) = sync_channel(1);
        let requests = self.requests.as_ref().expect("only dropping the engine takes it");
        // If no thread takes the request, it is dropped, and there is no answer.
        let _ = requests.send(Request { key: key.to_vec(), reply });
        answer.recv().map_or_else(|_| self.table.get(key), Ok)
    }
}

impl<T: Table + 'static> Drop for LookupEngine<T> {
    fn drop(&mut self) {
        self.requests = None;
        for thread in self.threads.drain(..) {
            // The panic has printed its own message.
            let _ = thread.join();
        }
    }
}

/// Runs an engine thread: waits for a request, and serves until none is left.
fn work(table: &dyn Table, queue: &RequestQueue) {
    loop {
        let first = queue.lock().expect("no holder of the queue's lock panics").recv();
        let Ok(first) = first else { return };
        // After a failed lookup, all callers without an answer do their lookups themselves and get their own
        // errors.
        let _ = serve(table, queue, first);
    }
}

/// Puts requests into a stream until all taken requests are answered.
fn serve(table: &dyn Table, queue: &RequestQueue, first: Request) -> Result<()> {
    let mut stream = table.stream()?;
    let mut replies = HashMap::new();
    let mut tokens = 0..;
    let mut taken = vec![first];
    loop {
        let is_quiet = taken.is_empty();
        for (token, Request { key, reply }) in tokens.by_ref().zip(taken.drain(..)) {
            replies.insert(token, reply);
            stream.push(&key, token)?;
        }
        while let Some((token, value)) = stream.poll()? {
            send(replies.remove(&token), value);
        }
        if replies.is_empty() {
            return Ok(());
        }
        if is_quiet && let Some((token, value)) = stream.pull()? {
            send(replies.remove(&token), value);
        }
        if let Ok(queue) = queue.try_lock() {
            taken.extend(queue.try_iter().take(TAKE_MAX));
        }
    }
}

fn send(reply: Option<SyncSender<Option<Value>>>, value: Option<Value>) {
    // The channel has space for one answer. The answer to a caller that has gone away is dropped.
    let _ = reply.map(|reply| reply.send(value));
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
        // Every page is damaged, and repaired later.
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
