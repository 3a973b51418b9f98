//! Files with every engine: the laws, locks, forks, forced engines, and the refusals of the kernel.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use tempfile::TempDir;

use super::*;
use crate::laws;

const ENGINES: [EngineChoice; 4] =
    [EngineChoice::Auto, EngineChoice::Uring, EngineChoice::Threads, EngineChoice::Buffered];

const NEW: FileOptions = FileOptions {
    access: Access::ReadWrite,
    engine: EngineChoice::Auto,
    create: Create::New,
    geometry: None,
    allocation: Allocation::Whole,
};
const READ_ONLY: FileOptions =
    FileOptions { access: Access::ReadOnly, create: Create::Open, ..NEW };

/// Returns a path in a directory of its own, next to the build: temporary directories may be in memory, which has
/// different limits than a disk.
fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR").to_owned() + "/../../target")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let path = directory.path().join("pages");
    (directory, path)
}

fn refusing_ring() -> io::Result<uring::RingMode> {
    Err(Errno::PERM.into())
}

fn refusing_direct(_: &fs::File) -> io::Result<()> {
    Err(Errno::INVAL.into())
}

/// Opens a file with this engine, if the machine has it. A container may have no io_uring.
fn open_with(path: &Path, engine: EngineChoice) -> Option<FileDevice> {
    match FileDevice::open(path, &FileOptions { engine, ..NEW }) {
        Err(Error::Engine { engine, reason }) => {
            eprintln!("skipped: the {engine} engine cannot run here: {reason}");
            None
        }
        device => Some(device.unwrap()),
    }
}

#[test]
fn a_file_in_use_is_refused_with_its_user() {
    let (_directory, path) = place();
    let device = FileDevice::open(&path, &NEW).unwrap();
    let refused = FileDevice::open(&path, &FileOptions::default()).unwrap_err();
    assert!(matches!(refused, Error::Locked { owner: Some(pid), .. } if pid == std::process::id()));
    assert!(refused.to_string().contains("in use by another handle of this process"), "{refused}");
    drop(device);
    FileDevice::open(&path, &FileOptions::default()).unwrap();
}

#[test]
fn every_engine_keeps_the_laws() {
    for engine in ENGINES {
        let (_directory, path) = place();
        let Some(device) = open_with(&path, engine) else { continue };
        laws::check(&device);
        assert_eq!(fs::metadata(&path).unwrap().len(), 64 * 4096);
    }
}

#[test]
fn a_file_system_of_memory_keeps_the_laws() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
    laws::check(&FileDevice::open(directory.path().join("pages"), &NEW).unwrap());
}

#[test]
fn an_array_of_files_keeps_the_laws() {
    let (_directory, path) = place();
    let member = |index: usize| {
        let path = path.with_extension(index.to_string());
        Arc::new(FileDevice::open(path, &NEW).unwrap()) as Arc<dyn Device>
    };
    let members = (0..3).map(member).collect();
    laws::check(&crate::ArrayDevice::new(members, crate::Striping::Extent { pages: 2 }).unwrap());
}

#[test]
fn what_one_engine_writes_another_reads() {
    let (_directory, path) = place();
    let device = FileDevice::open(&path, &NEW).unwrap();
    device.grow(8).unwrap();
    let mut buf = PageBuf::zeroed(2);
    buf.fill(7);
    device.write(PageId(3), buf).unwrap();
    device.sync().unwrap();
    drop(device);
    for engine in ENGINES {
        let device = match FileDevice::open(&path, &FileOptions { engine, ..READ_ONLY }) {
            Err(Error::Engine { .. }) => continue,
            device => device.unwrap(),
        };
        assert_eq!(device.page_count(), 8);
        let buf = device.read(PageId(3), PageBuf::zeroed(2)).unwrap();
        assert!(buf.iter().all(|&byte| byte == 7));
    }
}

#[test]
fn a_device_outlived_by_its_queue_stays_open_and_locked() {
    for engine in ENGINES {
        let (_directory, path) = place();
        let Some(device) = open_with(&path, engine) else { continue };
        device.grow(4).unwrap();
        let mut queue = device.queue(1).unwrap();
        drop(device);
        let again = FileOptions::default();
        assert!(matches!(FileDevice::open(&path, &again), Err(Error::Locked { .. })));
        let op = Op { token: 0, kind: OpKind::Read, page: PageId(3), buf: PageBuf::zeroed(1) };
        queue.push(op).unwrap();
        queue.wait(1, &mut Vec::new()).unwrap();
        drop(queue);
        FileDevice::open(&path, &again).unwrap();
    }
}

#[test]
fn a_writer_is_alone_and_readers_are_many() {
    let (_directory, path) = place();
    let writer = FileDevice::open(&path, &NEW).unwrap();
    for options in [READ_ONLY, FileOptions::default()] {
        let error = FileDevice::open(&path, &options).unwrap_err();
        assert!(matches!(&error, Error::Locked { path: at, .. } if *at == path), "{error}");
    }
    drop(writer);
    let readers = [FileDevice::open(&path, &READ_ONLY), FileDevice::open(&path, &READ_ONLY)];
    assert!(readers.iter().all(Result::is_ok));
    assert!(matches!(FileDevice::open(&path, &FileOptions::default()), Err(Error::Locked { .. })));
}

#[test]
fn a_read_only_device_refuses_every_change() {
    let (_directory, path) = place();
    FileDevice::open(&path, &NEW).unwrap().grow(4).unwrap();
    let device = FileDevice::open(&path, &READ_ONLY).unwrap();
    let is_refused = |result: Result<()>| matches!(result, Err(Error::ReadOnly { .. }));
    assert!(is_refused(device.write(PageId(0), PageBuf::zeroed(1)).map(drop)));
    assert!(is_refused(device.grow(9)));
    assert!(is_refused(device.discard(PageId(0)..PageId(1))));
    device.sync().unwrap();
    let mut queue = device.queue(1).unwrap();
    let op = Op { token: 0, kind: OpKind::Write, page: PageId(0), buf: PageBuf::zeroed(1) };
    assert!(is_refused(queue.push(op)));
    let options = FileOptions { create: Create::New, ..READ_ONLY };
    assert!(matches!(FileDevice::open(&path, &options), Err(Error::ReadOnly { .. })));
}

#[test]
fn creation_makes_what_is_asked_for_and_no_more() {
    let (_directory, path) = place();
    let open = |create| FileDevice::open(&path, &FileOptions { create, ..NEW });
    let kind = |result: Result<FileDevice>| match result.unwrap_err() {
        Error::Open { source, .. } => source.kind(),
        error => panic!("{error}"),
    };
    assert_eq!(kind(open(Create::Open)), io::ErrorKind::NotFound);
    let reader = FileOptions { create: Create::OpenOrCreate, ..READ_ONLY };
    assert_eq!(kind(FileDevice::open(&path, &reader)), io::ErrorKind::NotFound);
    open(Create::OpenOrCreate).unwrap().grow(2).unwrap();
    assert_eq!(kind(open(Create::New)), io::ErrorKind::AlreadyExists);
    assert_eq!(open(Create::OpenOrCreate).unwrap().page_count(), 2);
    let below = path.with_file_name("none").join("file");
    for create in [Create::New, Create::OpenOrCreate] {
        let error = FileDevice::open(&below, &FileOptions { create, ..NEW }).unwrap_err();
        assert!(error.to_string().contains("No such folder; create it first"), "{error}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let (directory, path) = place();
    for options in [READ_ONLY, FileOptions::default()] {
        for not_a_file in [directory.path(), Path::new("/dev/null"), &path.join("below")] {
            let error = FileDevice::open(not_a_file, &options).unwrap_err();
            assert!(matches!(error, Error::Open { .. }), "{error}");
        }
    }
}

#[test]
fn a_sparse_file_takes_only_what_is_written() {
    use std::os::unix::fs::MetadataExt;

    let (_folder, path) = place();
    let device =
        FileDevice::open(&path, &FileOptions { allocation: Allocation::Sparse, ..NEW }).unwrap();
    device.grow(1000).unwrap();
    device.write(PageId(999), PageBuf::zeroed(1)).unwrap();
    let found = path.metadata().unwrap();
    assert_eq!(found.len(), 1000 * 4096);
    assert!(found.blocks() * 512 < 100 * 4096, "{found:?}");
}

#[test]
fn growth_past_the_disk_is_refused_and_the_file_keeps_its_length() {
    let (_directory, path) = place();
    let device = FileDevice::open(&path, &NEW).unwrap();
    device.grow(3).unwrap();
    // An exbibyte, the longest file, and more than 64 bits of bytes.
    for page_count in [1 << 48, (1 << 51) - 1, 1 << 51, u64::MAX] {
        let error = device.grow(page_count).unwrap_err();
        let Error::NoSpace { place, .. } = &error else { panic!("{error}") };
        assert_eq!(*place, path.display().to_string());
    }
    assert_eq!((device.page_count(), fs::metadata(&path).unwrap().len()), (3, 3 * 4096));
    device.grow(4).unwrap();
}

#[test]
fn a_partial_page_at_the_end_is_ignored_and_never_shows() {
    let (_directory, path) = place();
    fs::write(&path, vec![9; 4096 + 100]).unwrap();
    let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
    assert_eq!(device.page_count(), 1);
    device.grow(2).unwrap();
    let buf = device.read(PageId(0), PageBuf::zeroed(2)).unwrap();
    assert!(buf.page(0).iter().all(|&byte| byte == 9));
    assert!(buf.page(1).iter().all(|&byte| byte == 0));
}

#[test]
fn a_file_cut_short_by_somebody_else_is_an_error_and_no_loop() {
    for engine in ENGINES {
        let (_directory, path) = place();
        let Some(device) = open_with(&path, engine) else { continue };
        device.grow(4).unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let error = device.read(PageId(2), PageBuf::zeroed(1)).unwrap_err();
        assert!(matches!(&error, Error::Io { operation: "read", .. }), "{error}");
        let mut queue = device.queue(2).unwrap();
        for page in 0..2 {
            // The second operation begins within the file and ends past it.
            let buf = PageBuf::zeroed(1 + page);
            let op = Op { token: 0, kind: OpKind::Read, page: PageId(0), buf };
            queue.push(op).unwrap();
        }
        let mut done = Vec::new();
        queue.wait(2, &mut done).unwrap();
        let failed = done.iter().filter(|completion| completion.result.is_err()).count();
        assert_eq!((done.len(), failed), (2, 1));
    }
}

#[test]
fn discarding_gives_the_blocks_back() {
    use std::os::unix::fs::MetadataExt;
    let (_directory, path) = place();
    let device = FileDevice::open(&path, &NEW).unwrap();
    device.grow(64).unwrap();
    device.write(PageId(0), PageBuf::zeroed(64)).unwrap();
    device.sync().unwrap();
    let before = fs::metadata(&path).unwrap().blocks();
    device.discard(PageId(0)..PageId(64)).unwrap();
    device.sync().unwrap();
    let after = fs::metadata(&path).unwrap();
    assert!(after.blocks() < before, "{} of {before} blocks are left", after.blocks());
    assert_eq!(after.len(), 64 * 4096);
    let error = device.discard(PageId(63)..PageId(65)).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
}

#[test]
fn a_refused_ring_falls_back_to_threads_and_says_why() {
    let (_directory, path) = place();
    let kernel = Kernel { ring: refusing_ring, ..Kernel::real() };
    let device = FileDevice::open_on(&path, &NEW, kernel).unwrap();
    let report = device.engine();
    if report.name == "buffered" {
        return; // The file system of the build refuses O_DIRECT; the next test covers that.
    }
    assert_eq!(report.name, "threads");
    assert_eq!(report.reason, "io_uring refused: Operation not permitted (os error 1)");
    laws::check(&device);
}

#[test]
fn refused_direct_access_falls_back_to_the_page_cache_and_says_why() {
    let (_directory, path) = place();
    let kernel = Kernel { direct: refusing_direct, ..Kernel::real() };
    let device = FileDevice::open_on(&path, &NEW, kernel).unwrap();
    let report = device.engine();
    assert_eq!(report.name, "buffered");
    assert_eq!(report.reason, "O_DIRECT refused: Invalid argument (os error 22)");
    laws::check(&device);
}

#[test]
fn a_forced_engine_that_cannot_run_is_an_error_and_leaves_no_file() {
    let (_directory, path) = place();
    let direct = Kernel { direct: refusing_direct, ..Kernel::real() };
    let ring = Kernel { ring: refusing_ring, direct: |_| Ok(()) };
    for (engine, kernel) in [
        (EngineChoice::Uring, ring),
        (EngineChoice::Uring, direct),
        (EngineChoice::Threads, direct),
    ] {
        let options = FileOptions { engine, ..NEW };
        let error = FileDevice::open_on(&path, &options, kernel).unwrap_err();
        assert!(matches!(error, Error::Engine { .. }), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn forced_engines_report_themselves() {
    for (engine, name) in ENGINES.into_iter().zip(["", "uring", "threads", "buffered"]).skip(1) {
        let (_directory, path) = place();
        let Some(device) = open_with(&path, engine) else { continue };
        let expected = EngineReport { name: name.into(), reason: "forced".into() };
        assert_eq!(device.engine(), expected);
    }
}

#[test]
fn a_ring_deeper_than_the_kernel_makes_becomes_threads_unless_it_was_forced() {
    let (_directory, path) = place();
    let device = FileDevice::open(&path, &NEW).unwrap();
    if device.engine().name != "uring" {
        return;
    }
    device.grow(1).unwrap();
    let mut queue = device.queue(40_000).unwrap();
    let op = Op { token: 0, kind: OpKind::Read, page: PageId(0), buf: PageBuf::zeroed(1) };
    queue.push(op).unwrap();
    queue.wait(1, &mut Vec::new()).unwrap();
    assert!(device.engine().reason.contains("depth 40000 was refused"));
    drop((queue, device));
    let forced = FileOptions { engine: EngineChoice::Uring, ..FileOptions::default() };
    let device = FileDevice::open(&path, &forced).unwrap();
    assert!(matches!(device.queue(40_000), Err(Error::Engine { engine: "uring", .. })));
}

#[test]
fn a_file_tells_the_geometry_that_its_user_gave() {
    let (_directory, path) = place();
    assert_eq!(FileDevice::open(&path, &NEW).unwrap().geometry(), Geometry::opaque());
    let known = Geometry { channels: Some(8), chunk_bytes: Some(8192), ..Geometry::opaque() };
    let told = FileOptions { geometry: Some(known), ..FileOptions::default() };
    assert_eq!(FileDevice::open(&path, &told).unwrap().geometry(), known);
    let impossible = Geometry { buses: Some(3), ..known };
    let told = FileOptions { geometry: Some(impossible), ..told };
    let error = FileDevice::open(&path, &told).unwrap_err();
    assert!(matches!(error, Error::Geometry { field: "buses", .. }), "{error}");
}

#[test]
fn a_queue_of_no_depth_is_always_full() {
    for engine in ENGINES {
        let (_directory, path) = place();
        let Some(device) = open_with(&path, engine) else { continue };
        device.grow(1).unwrap();
        let mut queue = device.queue(0).unwrap();
        let op = Op { token: 0, kind: OpKind::Read, page: PageId(0), buf: PageBuf::zeroed(1) };
        assert!(matches!(queue.push(op), Err(Error::QueueFull { depth: 0 })));
    }
}

/// Runs `act` in a forked child and returns its exit code.
fn in_child(act: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only calls `act` and leaves by `_exit`, so it runs none of its parent's
    // destructors; the C library's allocator is made usable again by its own fork handlers.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", io::Error::last_os_error());
    if child == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).unwrap_or(99);
        // SAFETY: `_exit` ends the process without touching anything.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    // SAFETY: `status` outlives the call, and the child is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}

/// Returns how many of the calls that a child must not make fail in it.
fn refusals(device: &FileDevice, queue: &mut dyn Queue) -> i32 {
    let op = Op { token: 0, kind: OpKind::Read, page: PageId(0), buf: PageBuf::zeroed(1) };
    let results = [
        device.read(PageId(0), PageBuf::zeroed(1)).map(drop),
        device.write(PageId(0), PageBuf::zeroed(1)).map(drop),
        device.sync(),
        device.grow(9),
        device.discard(PageId(0)..PageId(1)),
        device.queue(1).map(drop),
        queue.push(op),
        queue.wait(1, &mut Vec::new()),
    ];
    let is_refused = |result: &&Result<()>| matches!(result, Err(Error::Forked { .. }));
    i32::try_from(results.iter().filter(is_refused).count()).unwrap()
}

#[test]
fn a_child_process_is_refused_and_can_drop_what_it_inherited() {
    for engine in ENGINES {
        let (_directory, path) = place();
        let Some(device) = open_with(&path, engine) else { continue };
        device.grow(8).unwrap();
        let mut queue = device.queue(8).unwrap();
        for page in 0..8 {
            let buf = PageBuf::zeroed(1);
            queue.push(Op { token: page, kind: OpKind::Write, page: PageId(page), buf }).unwrap();
        }
        let mut done = Vec::new();
        queue.wait(0, &mut done).unwrap();
        let mut inherited = Some((device, queue));
        let code = in_child(|| {
            let (device, mut queue) = inherited.take().unwrap();
            let refused = refusals(&device, &mut *queue);
            drop((queue, device));
            refused
        });
        assert_eq!(code, 8, "{engine:?}");
        let again = FileDevice::open(&path, &FileOptions::default());
        assert!(matches!(again, Err(Error::Locked { .. })), "the child must not free the lock");
        let (device, mut queue) = inherited.unwrap();
        queue.wait(8, &mut done).unwrap();
        assert!(done.len() == 8 && done.iter().all(|completion| completion.result.is_ok()));
        device.read(PageId(7), PageBuf::zeroed(1)).unwrap();
    }
}
