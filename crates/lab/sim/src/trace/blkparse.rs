//! The default output of blkparse: a line per event of a request's life, then a summary.
//!
//! `maj,min cpu sequence seconds.nanoseconds pid action RWBS sector + sectors [process]`. Letters of RWBS: R
//! read, W write, D discard, E secure erase, F flush before or after, N neither (a command of the drive's
//! own), and A, M, S for read-ahead, metadata and synchronous. A flush without data has no sectors. Each
//! request is queued, merged, dispatched and completed, so one event of them is used.

use super::error::Misfit;
use super::fields::{decimal, extent, need, number, sectors};
use super::reader::BlkparseEvent;
use super::record::{Line, Raw};
use crate::RequestKind;

pub(super) fn parse(line: &str, event: BlkparseEvent) -> Result<Line<'_>, Misfit> {
    if is_summary(line) {
        return Ok(Line::End);
    }
    let mut fields = line.split_ascii_whitespace();
    let device = device(need(fields.next(), "the device as major,minor")?)?;
    number(need(fields.next(), "the CPU")?, "the CPU's number")?;
    number(need(fields.next(), "the sequence number")?, "the sequence number")?;
    let clock = need(fields.next(), "the time")?;
    let clock_ns = decimal(clock, 9, "the time in seconds")?;
    number(need(fields.next(), "the process")?, "the process's number")?;
    let action = action(need(fields.next(), "the action")?)?;
    if action != event.letter() {
        return Ok(Line::Other(action));
    }
    let letters = need(fields.next(), "the letters of RWBS")?;
    let first = fields.next();
    let raw = match (kind(letters)?, first) {
        (None, _) => return Ok(Line::Other("drive command")),
        (Some(Letters { flush: true, .. }), None) => flush(clock_ns),
        (Some(Letters { flush: true, .. }), Some(word)) if word.starts_with('[') => flush(clock_ns),
        (Some(Letters { kind, .. }), first) => {
            let sector = need(first, "the first sector")?;
            let plus = need(fields.next(), "`+`")?;
            if plus != "+" {
                return Err(Misfit::new("`+` between sector and sectors", plus));
            }
            let count = need(fields.next(), "the number of sectors")?;
            data(clock_ns, kind, sector, count)?
        }
    };
    Ok(Line::Record { device, raw })
}

fn data(clock_ns: u128, kind: RequestKind, sector: &str, count: &str) -> Result<Raw, Misfit> {
    let offset = sectors(sector, "the first sector")?;
    let bytes = sectors(count, "the number of sectors")?;
    if bytes == 0 && kind == RequestKind::Write {
        return Ok(flush(clock_ns));
    }
    let (offset_bytes, bytes) = extent(offset, bytes, count)?;
    Ok(Raw { clock_ns, kind, offset_bytes, bytes })
}

const fn flush(clock_ns: u128) -> Raw {
    Raw { clock_ns, kind: RequestKind::Sync, offset_bytes: 0, bytes: 0 }
}

/// Returns whether it is the first line after the events: `CPU0 (sda):` or, with one CPU, `Total (sda):`.
fn is_summary(line: &str) -> bool {
    let line = line.trim_start();
    let numbered =
        line.strip_prefix("CPU").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    (numbered || line.starts_with("Total (")) && line.trim_end().ends_with("):")
}

fn device(field: &str) -> Result<&str, Misfit> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = field.split_once(',');
    if parts.is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
        return Ok(field);
    }
    Err(Misfit::new("the device as major,minor such as 8,0", field))
}

fn action(field: &str) -> Result<&str, Misfit> {
    // blktrace's actions have one letter, or two for those of plugging by a timer.
    if field.len() <= 2 && field.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(field);
    }
    Err(Misfit::new("the action, a letter such as Q, D or C", field))
}

/// The meaning of the letters.
struct Letters {
    kind: RequestKind,
    flush: bool,
}

/// Returns the meaning of the letters; `None` for a command of the drive's own, which moves no data of the
/// file system.
fn kind(letters: &str) -> Result<Option<Letters>, Misfit> {
    let known = letters.bytes().all(|letter| b"RWDEFNAMSVZ".contains(&letter));
    let has = |letter: char| letters.contains(letter);
    let flush = letters.starts_with('F');
    let kind = match () {
        () if !known => None,
        () if has('D') || has('E') => Some(RequestKind::Discard),
        () if has('R') => Some(RequestKind::Read),
        () if has('W') || flush => Some(RequestKind::Write),
        () if has('N') => return Ok(None),
        () => None,
    };
    let kind = kind.ok_or_else(|| Misfit::new("letters of RWBS such as R, WS or FWS", letters))?;
    Ok(Some(Letters { kind, flush }))
}
