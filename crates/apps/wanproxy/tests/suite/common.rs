//! A pair of halves, targets, programs, and a link that can be observed and damaged.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nandex::device::{Device, MemoryDevice};
use nandex::{Volume, VolumeOptions};
use nandex_wan::live::LiveOptions;
use nandex_wan::{CACHE_BYTES_MIN, CacheConfig, EncodeOptions};
use nandex_wanproxy::{
    Allowed, Cache, ClientConfig, Entrance, Limits, Peer, Proxy, Security, ServerConfig, SharedKey,
    Snapshot, Target,
};
use tokio::net::TcpSocket;

/// The longest wait of a test for an expected event.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Any free port of this machine only.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The smallest cache.
pub const SMALL: CacheConfig =
    CacheConfig { content_bytes: CACHE_BYTES_MIN, chunk_bytes: 1 << 10, ram_bytes: None };

/// Small chunks and segments, so that a short stream has many.
pub fn fine() -> LiveOptions {
    let encode =
        EncodeOptions { chunk_bytes: 1 << 10, segment_bytes: 32 << 10, ..EncodeOptions::default() };
    LiveOptions { encode, window_bytes: 1 << 20, plain_after_bytes: 0 }
}

pub fn cache() -> Arc<Cache> {
    cache_on(Arc::new(MemoryDevice::new()))
}

/// Creates a cache on a device. With a fixed hash key, every run fills its pages alike.
pub fn cache_on(device: Arc<dyn Device>) -> Arc<Cache> {
    let log_bytes = SMALL.log_bytes().expect("it can work");
    let options = VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
    let volume = Volume::create(device, options).expect("it fits");
    Arc::new(Cache::create_in(&volume, SMALL).expect("it fits"))
}

/// Reproducible noise: xorshift64*.
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// Returns reproducible text, which zstd makes about a third as long.
pub fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut words = noise(bytes, seed).into_iter().map(|byte| format!("word{byte} "));
    let mut out = Vec::new();
    while out.len() < bytes {
        out.extend_from_slice(words.next().expect("there are enough").as_bytes());
    }
    out.truncate(bytes);
    out
}

/// The keys of a test.
pub struct Keys(tempfile::TempDir);

impl Keys {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder can be made"))
    }

    /// Creates a new key.
    pub fn make(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, SharedKey::generate().expect("random numbers")).expect("it is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        path
    }
}

/// The configurations of the halves of a test.
pub struct Plan {
    pub keys: Keys,
    pub client: ClientConfig,
    pub server: ServerConfig,
}

impl Plan {
    /// Creates a plan with a forward to this target with a shared key.
    pub fn new(target: SocketAddr) -> Self {
        let keys = Keys::new();
        let key = keys.make("key");
        let security = Security::Keys(vec![key]);
        let limits = Limits { engine_threads: 2, ..Limits::default() };
        let client = ClientConfig {
            entrances: vec![(ANY, Entrance::Forward(None))],
            peer: Peer { address: Target::of(target), tls_name: None },
            security: security.clone(),
            status: None,
            is_public: false,
            bypasses: false,
            live: fine(),
            limits,
        };
        let server = ServerConfig {
            listen: ANY,
            target: Some(Target::of(target)),
            allowed: Vec::new(),
            security,
            status: None,
            is_public: false,
            live: fine(),
            limits,
        };
        Self { keys, client, server }
    }

    /// Lets the program name the target, and allows everything on this machine.
    pub fn entrance(mut self, entrance: Entrance) -> Self {
        self.client.entrances = vec![(ANY, entrance)];
        self.server.allowed = ["127.0.0.1:*", "localhost:*", "[::1]:*"].map(allowed).to_vec();
        self
    }

    /// Starts both halves with new caches.
    pub fn start(self) -> Pair {
        self.start_with(cache(), cache())
    }

    /// Starts both halves, the client's cache first.
    pub fn start_with(self, here: Arc<Cache>, there: Arc<Cache>) -> Pair {
        self.start_over(here, there, |server| server)
    }

    /// Starts both halves; the client half reaches the server half at another address.
    pub fn start_over(
        self,
        here: Arc<Cache>,
        there: Arc<Cache>,
        link: impl FnOnce(SocketAddr) -> SocketAddr,
    ) -> Pair {
        let Self { keys, mut client, server } = self;
        let server = Proxy::server(there, server).expect("the server half starts");
        client.peer.address = Target::of(link(server.addresses()[0].address));
        let client = Proxy::client(here, client).expect("the client half starts");
        Pair { client, server, _keys: keys }
    }
}

pub fn allowed(pattern: &str) -> Allowed {
    pattern.parse().expect("a pattern")
}

/// Both halves.
pub struct Pair {
    pub client: Proxy,
    pub server: Proxy,
    _keys: Keys,
}

impl Pair {
    /// Opens a connection of a program.
    pub fn connect(&self) -> TcpStream {
        connect(self.client.addresses()[0].address)
    }

    /// Ends both halves; returns their figures, the client's first.
    pub fn stop(self) -> (Snapshot, Snapshot) {
        let client = self.client.stop().expect("the cache is saved");
        (client, self.server.stop().expect("the cache is saved"))
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Starts a target that serves each connection in a separate thread.
pub fn target(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(ANY).expect("a free port");
    let address = listener.local_addr().expect("it has one");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Starts a target that sends back its input.
pub fn echo() -> SocketAddr {
    target(|mut stream| {
        let mut back = stream.try_clone().expect("a clone");
        if std::io::copy(&mut stream, &mut back).is_ok() {
            let _ = back.shutdown(Shutdown::Write);
        }
    })
}

/// Returns an address without a listener, until the end of the tests: a socket that does not listen keeps its port.
pub fn nobody() -> SocketAddr {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(ANY).expect("a free port");
    let address = socket.local_addr().expect("it has one");
    std::mem::forget(socket);
    address
}

/// Sends all bytes and reads to the end. The system reports a reset once, to either the reader or the writer.
#[track_caller]
pub fn exchange(mut stream: TcpStream, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = stream.try_clone()?;
    let mut copy = Vec::new();
    let (written, read) = thread::scope(|scope| {
        let write = || writer.write_all(bytes).and_then(|()| writer.shutdown(Shutdown::Write));
        let writing = scope.spawn(write);
        let read = stream.read_to_end(&mut copy);
        (writing.join().expect("no panics"), read)
    });
    written.and(read).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::NotConnected => ErrorKind::ConnectionReset.into(),
        _ => error,
    })?;
    Ok(copy)
}

/// Waits until a condition holds.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The damage of a link to the bytes from the client half to the server half, or back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Nothing.
    None,
    /// It ends after this number of bytes from the client half.
    CutUp(u64),
    /// It ends after this number of bytes from the server half.
    CutDown(u64),
    /// A bit of the byte at that place is flipped, from the client half.
    FlipUp(u64),
    /// The same from the server half.
    FlipDown(u64),
    /// A KiB from the client half takes this number of milliseconds.
    SlowUp(u64),
}

/// A link between the halves that records the bytes from the client half.
pub struct Link {
    pub address: SocketAddr,
    pub up: Arc<Mutex<Vec<u8>>>,
}

impl Link {
    pub fn new(to: SocketAddr, damage: Damage) -> Self {
        let up = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&up);
        let address = target(move |client| {
            let server = TcpStream::connect(to).expect("the server half listens");
            let (cut_up, flip_up, cut_down, flip_down) = match damage {
                Damage::None | Damage::SlowUp(_) => (None, None, None, None),
                Damage::CutUp(at) => (Some(at), None, None, None),
                Damage::FlipUp(at) => (None, Some(at), None, None),
                Damage::CutDown(at) => (None, None, Some(at), None),
                Damage::FlipDown(at) => (None, None, None, Some(at)),
            };
            let each_kib = match damage {
                Damage::SlowUp(ms) => Duration::from_millis(ms),
                _ => Duration::ZERO,
            };
            let (client, server, kept) = (&client, &server, &kept);
            let keep = move |bytes: &[u8]| {
                kept.lock().expect("no panics").extend_from_slice(bytes);
                thread::sleep(each_kib * bytes.len().div_ceil(1024) as u32);
            };
            thread::scope(|scope| {
                scope.spawn(move || pass((client, server), (cut_up, flip_up), keep));
                pass((server, client), (cut_down, flip_down), |_| ());
            });
        });
        Self { address, up }
    }
}

fn pass(
    (mut from, mut to): (&TcpStream, &TcpStream),
    (cut, flip): (Option<u64>, Option<u64>),
    keep: impl Fn(&[u8]),
) {
    let passed = AtomicU64::new(0);
    let mut buffer = [0; 4096];
    loop {
        let left = cut.map_or(u64::MAX, |cut| cut - passed.load(Relaxed));
        if left == 0 {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let Ok(read @ 1..) = from.read(&mut buffer[..most]) else {
            let _ = to.shutdown(Shutdown::Write);
            return;
        };
        let begin = passed.fetch_add(read as u64, Relaxed);
        if let Some(at) =
            flip.and_then(|flip| flip.checked_sub(begin)).filter(|at| *at < read as u64)
        {
            buffer[at as usize] ^= 0x20;
        }
        keep(&buffer[..read]);
        if to.write_all(&buffer[..read]).is_err() {
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
    }
}
