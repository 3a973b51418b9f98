//! MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.

use super::error::Misfit;
use super::fields::{extent, need, number};
use super::record::{Line, Raw};
use crate::RequestKind;

/// The nanoseconds of a tick of the Windows file time.
const TICK_NS: u128 = 100;

pub(super) fn parse(line: &str) -> Result<Line<'_>, Misfit> {
    if line.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("timestamp,")) {
        return Ok(Line::Other("a header"));
    }
    let mut columns = line.split(',').map(str::trim);
    let ticks = number(need(columns.next(), "the timestamp")?, "the timestamp in 100 ns")?;
    need(columns.next(), "the host's name")?;
    let device = need(columns.next(), "the disk's number")?;
    number(device, "the disk's number")?;
    let kind = kind(need(columns.next(), "`Read` or `Write`")?)?;
    let offset = number(need(columns.next(), "the offset")?, "the offset in bytes")?;
    let size = need(columns.next(), "the size")?;
    let (offset_bytes, bytes) = extent(offset, number(size, "the size in bytes")?, size)?;
    number(need(columns.next(), "the response time")?, "the response time in 100 ns")?;
    if let Some(more) = columns.next() {
        return Err(Misfit::new("7 columns, of which the last is the response time", more));
    }
    let clock_ns = u128::from(ticks) * TICK_NS;
    Ok(Line::Record { device, raw: Raw { clock_ns, kind, offset_bytes, bytes } })
}

fn kind(column: &str) -> Result<RequestKind, Misfit> {
    match column {
        _ if column.eq_ignore_ascii_case("read") => Ok(RequestKind::Read),
        _ if column.eq_ignore_ascii_case("write") => Ok(RequestKind::Write),
        other => Err(Misfit::new("the type, `Read` or `Write`", other)),
    }
}
