//! Many pages at once: read, changed and written back, or only read.

use nandex::device::Device;
use nandex::raw::device::{Completion, Op, OpKind, PageBuf, PageId};
use nandex_sim::SimDevice;

use super::{HASHES, has};
use crate::Result;

/// Reads each I/O chunk, changes it and writes it back, `depth` of them in flight; then syncs.
pub(super) fn rewrite(
    drive: &SimDevice,
    chunks: &[(u64, u64)],
    in_flight: usize,
    apply: impl Fn(u64, &mut PageBuf),
) -> Result<()> {
    let mut queue = drive.queue(in_flight)?;
    let mut chunks = chunks.iter();
    let mut done: Vec<Completion> = Vec::new();
    loop {
        while queue.in_flight() < in_flight
            && let Some((first, pages)) = chunks.next()
        {
            let buf = PageBuf::zeroed(*pages as usize);
            queue.push(Op { token: 0, kind: OpKind::Read, page: PageId(*first), buf })?;
        }
        if queue.in_flight() == 0 {
            return Ok(drive.sync()?);
        }
        queue.wait(1, &mut done)?;
        for mut completion in done.drain(..) {
            completion.result?;
            if completion.kind == OpKind::Read {
                apply(completion.page.0, &mut completion.buf);
                let (page, buf) = (completion.page, completion.buf);
                queue.push(Op { token: 0, kind: OpKind::Write, page, buf })?;
            }
        }
    }
}

/// Reads in flight in a batch of lookups.
const DEPTH: usize = 32;

/// A key's places, and the number of its bits that were checked.
pub(super) type KeyProbes = ([(u64, u64); HASHES], usize);

/// Looks keys up, the last one first: reads the page of a key's next bit, until one is not set or none
/// remains on another page. Returns the number of keys with all their bits.
pub(super) fn look_up(
    drive: &SimDevice,
    waiting: &mut Vec<KeyProbes>,
    reads: &mut u64,
) -> Result<u64> {
    let mut queue = drive.queue(DEPTH)?;
    let mut in_flight: Vec<Option<KeyProbes>> = vec![None; DEPTH];
    let mut done: Vec<Completion> = Vec::new();
    let mut yes = 0;
    loop {
        while let Some(slot) = in_flight.iter().position(Option::is_none)
            && let Some(next) = waiting.pop()
        {
            in_flight[slot] = Some(next);
            let (page, buf) = (PageId(next.0[next.1].0), PageBuf::zeroed(1));
            queue.push(Op { token: slot as u64, kind: OpKind::Read, page, buf })?;
            *reads += 1;
        }
        if queue.in_flight() == 0 {
            return Ok(yes);
        }
        queue.wait(1, &mut done)?;
        for completion in done.drain(..) {
            completion.result?;
            let slot = completion.token as usize;
            let (places, mut at) = in_flight[slot].take().expect("a read is for a key");
            let bytes = completion.buf.page(0);
            let page = completion.page.0;
            let mut is_set = true;
            while is_set && at < HASHES && places[at].0 == page {
                is_set = has(bytes, places[at].1);
                at += 1;
            }
            match (is_set, at < HASHES) {
                (true, true) => waiting.push((places, at)),
                (true, false) => yes += 1,
                (false, _) => {}
            }
        }
    }
}
