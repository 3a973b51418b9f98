//! Files that change, end early, fail or vanish while they are read.

use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, sync_channel};

use super::*;

/// A scripted source: bytes or errors to read, and a stamp for every call.
struct Scripted {
    reads: Vec<io::Result<Vec<u8>>>,
    stamps: std::cell::RefCell<Vec<Stamp>>,
}

impl Scripted {
    fn new(reads: Vec<io::Result<Vec<u8>>>, stamps: [Stamp; 2]) -> Self {
        let [before, after] = stamps;
        Self { reads, stamps: vec![after, before].into() }
    }
}

impl Read for Scripted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.reads.is_empty() {
            return Ok(0);
        }
        let bytes = self.reads.remove(0)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

impl Holes for Scripted {
    fn zeros_ahead(&mut self) -> u64 {
        0
    }

    fn skip_zeros(&mut self, _bytes: u64) {}
}

impl Source for Scripted {
    fn stamp(&self) -> io::Result<Stamp> {
        Ok(self.stamps.borrow_mut().pop().expect("asked twice"))
    }
}

fn stamp(bytes: u64, modified_s: i64) -> Stamp {
    Stamp { bytes, modified_s, modified_ns: 0 }
}

fn outbox() -> (Outbox, Receiver<Piece>) {
    let (results, pieces) = sync_channel(8);
    (Outbox::new(results), pieces)
}

/// Returns the problem of a source, and the bytes of its chunks.
fn read(mut source: Scripted) -> (Option<Skipped>, u64) {
    let running = AtomicBool::new(false);
    let stop = Stop::new(&running, &running);
    let mut reader = Reader::new(&Options::new(["unused"]), stop);
    let (mut outbox, _pieces) = outbox();
    let flow = reader.read_source(Path::new("/f"), &mut source, &mut outbox);
    let ControlFlow::Continue(remark) = flow else { panic!("nothing stops it") };
    (remark, outbox.bytes)
}

#[test]
fn a_file_that_stays_as_it_is_needs_no_remark() {
    let source = Scripted::new(vec![Ok(vec![1; 10])], [stamp(10, 1), stamp(10, 1)]);
    assert_eq!(read(source), (None, 10));
}

#[test]
fn a_file_that_grows_is_touched_or_ends_early_has_changed_and_counts() {
    let cases = [[stamp(10, 1), stamp(12, 1)], [stamp(10, 1), stamp(10, 2)], [stamp(11, 1); 2]];
    for stamps in cases {
        let (remark, bytes) = read(Scripted::new(vec![Ok(vec![1; 10])], stamps));
        let remark = remark.unwrap();
        assert_eq!((remark.kind, bytes), (SkipKind::Changed, 10));
        assert!(remark.reason.contains("10 bytes"), "{}", remark.reason);
    }
}

#[test]
fn a_file_that_fails_half_way_is_reported_with_how_far_it_was_read() {
    let max_bytes = 64 << 10;
    let reads = vec![Ok(vec![1; max_bytes]), Err(io::Error::other("bad sector"))];
    let (remark, bytes) = read(Scripted::new(reads, [stamp(1 << 20, 1); 2]));
    let remark = remark.unwrap();
    assert_eq!(remark.kind, SkipKind::Unreadable);
    assert!(remark.reason.contains(&format!("{bytes} bytes")), "{}", remark.reason);
    assert!(remark.reason.ends_with("bad sector"));
    assert_eq!(bytes, 64 << 10, "one longest chunk was whole");
}

#[test]
fn a_file_that_is_gone_or_became_something_else_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    assert_eq!(open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(open(directory.path()).unwrap_err().to_string().contains("no longer a regular file"));
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    assert!(open(&path).is_err(), "a link is not followed");
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_block() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, Mode::RUSR, 0).unwrap();
    assert!(open(&path).unwrap_err().to_string().contains("no longer a regular file"));
}

#[test]
fn a_job_tells_its_finds_in_order_and_marks_its_last_piece() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    std::fs::write(&path, [1; 2000]).unwrap();
    let gone = directory.path().join("gone");
    let file =
        |path: &Path| Found::File(FileEntry { path: path.to_owned(), bytes: 1, depth: 0, tree: 0 });
    let link = Skipped::new(&path, SkipKind::Symlink, "");
    let (results, pieces) = sync_channel(8);
    let finds = vec![file(&path), Found::Skipped(link), file(&gone)];
    let running = AtomicBool::new(false);
    let stop = Stop::new(&running, &running);
    let mut reader = Reader::new(&Options::new(["unused"]), stop);
    assert!(reader.work(Job { finds, results }).is_continue());

    let piece = pieces.recv().unwrap();
    assert!(piece.is_last);
    assert_eq!(piece.chunks.len(), 1);
    let told: Vec<_> = piece.ends.iter().map(|(at, end)| (*at, format!("{end:?}"))).collect();
    assert!(told[0].0 == 1 && told[0].1.ends_with("None)"), "{told:?}");
    assert!(told[1].1.starts_with("Skipped("), "{told:?}");
    assert!(told[2].1.contains("No such file"), "{told:?}");
}

#[test]
fn a_worker_ends_when_nobody_takes_its_results() {
    let (results, pieces) = sync_channel(1);
    drop(pieces);
    let running = AtomicBool::new(false);
    let mut reader = Reader::new(&Options::new(["unused"]), Stop::new(&running, &running));
    assert!(reader.work(Job { finds: vec![], results }).is_break());
}
