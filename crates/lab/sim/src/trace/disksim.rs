//! DiskSim's ASCII format: time in ms, device, first sector, sectors, and flags, of which bit 0 means a read.

use super::error::Misfit;
use super::fields::{decimal, extent, need, number, sectors};
use super::record::{Line, Raw};
use crate::RequestKind;

/// The flag of a read; DiskSim's other flags are the driver's.
const READ: u64 = 1;

pub(super) fn parse(line: &str) -> Result<Line<'_>, Misfit> {
    let mut fields = line.split_ascii_whitespace();
    let clock_ns = decimal(need(fields.next(), "the time")?, 6, "the time in milliseconds")?;
    let device = need(fields.next(), "the device's number")?;
    number(device, "the device's number")?;
    let offset = sectors(need(fields.next(), "the first sector")?, "the first sector")?;
    let count = need(fields.next(), "the number of sectors")?;
    let (offset_bytes, bytes) = extent(offset, sectors(count, "the number of sectors")?, count)?;
    let kind = kind(need(fields.next(), "the flags")?)?;
    if let Some(more) = fields.next() {
        return Err(Misfit::new("5 fields: time device sector sectors flags", more));
    }
    Ok(Line::Record { device, raw: Raw { clock_ns, kind, offset_bytes, bytes } })
}

fn kind(field: &str) -> Result<RequestKind, Misfit> {
    let digits = field.bytes().all(|byte| byte.is_ascii_hexdigit());
    let flags = if digits { u64::from_str_radix(field, 16).ok() } else { None };
    let flags = flags.ok_or_else(|| Misfit::new("the flags, a hexadecimal number", field))?;
    Ok(if flags & READ == 0 { RequestKind::Write } else { RequestKind::Read })
}
