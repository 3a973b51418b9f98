//! Several devices as one.
//!
//! `striping` computes the place of each page; `queue` spreads operations over the members' queues. An operation on one
//! member is passed on unchanged; only one that crosses a border is split, copied, and reassembled. `label` describes a
//! member, and `labelled` is an array that checks labels.

mod geometry;
mod label;
mod labelled;
mod members;
mod queue;
mod striping;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

pub use self::label::{Label, LabelFault};
pub use self::labelled::{ArrayOptions, LabelledArray, Member};
use self::queue::ArrayQueue;
pub use self::striping::Striping;
use self::striping::{Layout, Place};
use crate::{Access, Device, EngineReport, Error, Geometry, OpKind, PAGE_BYTES, PageBuf};
use crate::{PageId, Queue, Result};

/// Several devices as one. Errors of a member are returned as [`Error::Member`].
///
/// The members' order and the striping are part of the stored data: open the array with the same ones again, or use a
/// [`LabelledArray`], which knows its members. There is no protection against the loss of a member.
#[derive(Debug)]
pub struct ArrayDevice {
    members: Arc<Members>,
    layout: Layout,
}

/// The devices of an array, their names, and the permitted access.
#[derive(Debug)]
struct Members {
    devices: Vec<Arc<dyn Device>>,
    /// The name of each device; empty if no names were given.
    names: Vec<String>,
    access: Access,
}

impl Members {
    fn page_counts(&self) -> impl Iterator<Item = u64> {
        self.devices.iter().map(|device| device.page_count())
    }

    /// Returns the error of an operation on this member.
    fn failed(&self, member: usize, error: Error) -> Error {
        let name = self.names.get(member).cloned().unwrap_or_default();
        Error::Member { member, name, source: Box::new(error) }
    }

    /// Rejects writes to an array that was opened for reading.
    fn check_allowed(&self, kind: OpKind) -> Result<()> {
        if kind == OpKind::Write { self.check_writable() } else { Ok(()) }
    }

    fn check_writable(&self) -> Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly | Access::ReadUnlocked => {
                Err(Error::ReadOnly { path: self.names.join(", ").into() })
            }
        }
    }
}

impl ArrayDevice {
    /// Combines the members.
    ///
    /// # Errors
    /// [`Error::Array`] if there is no member, a stripe of no pages, pages of different sizes, or more pages than can
    /// be counted.
    pub fn new(members: Vec<Arc<dyn Device>>, striping: Striping) -> Result<Self> {
        let layout = Layout { striping, members: members.len(), first: 0 };
        let access = Access::ReadWrite;
        Self::assemble(Members { devices: members, names: Vec::new(), access }, layout)
    }

    /// Combines the members, each after the pages that the array does not use.
    fn assemble(members: Members, layout: Layout) -> Result<Self> {
        let count = members.devices.len();
        let misfit = |reason: &str| Err(Error::Array { members: count, reason: reason.into() });
        if count == 0 {
            return misfit("it needs at least one");
        }
        if layout.stripe_pages() == 0 {
            return misfit("a stripe or partition needs at least one page");
        }
        let pages = layout.stripe_pages().checked_mul(count as u64);
        if pages.and_then(|pages| pages.checked_add(layout.first)).is_none() {
            return misfit("their pages are more than can be counted; use smaller stripes");
        }
        if members.devices.iter().any(|member| member.geometry().page_bytes != PAGE_BYTES) {
            return misfit("their pages are not all of 4096 bytes");
        }
        Ok(Self { members: Arc::new(members), layout })
    }

    /// Calls `act` for every member, and returns the first error at the end.
    fn each(&self, act: impl Fn(usize, &dyn Device) -> Result<()>) -> Result<()> {
        let mut first = Ok(());
        for (index, member) in self.members.devices.iter().enumerate() {
            let result = act(index, &**member);
            let result = result.map_err(|error| self.members.failed(index, error));
            first = first.and(result);
        }
        first
    }

    /// Carries out one operation member by member, on the caller's thread.
    fn run(&self, kind: OpKind, page: PageId, mut buf: PageBuf) -> Result<PageBuf> {
        let pages = buf.pages() as u64;
        check_range(page, pages, self.page_count())?;
        self.members.check_allowed(kind)?;
        let place = self.layout.place(page);
        if place.run >= pages {
            return self.run_on(kind, place, buf);
        }
        for part in parts(self.layout, page, pages) {
            let mut piece = PageBuf::zeroed(part.pages());
            if kind == OpKind::Write {
                piece.copy_from_slice(&buf[part.bytes.clone()]);
            }
            let piece = self.run_on(kind, part.place, piece)?;
            if kind == OpKind::Read {
                buf[part.bytes].copy_from_slice(&piece);
            }
        }
        Ok(buf)
    }

    fn run_on(&self, kind: OpKind, place: Place, buf: PageBuf) -> Result<PageBuf> {
        let member = &self.members.devices[place.member];
        let result = match kind {
            OpKind::Read => member.read(place.page, buf),
            OpKind::Write => member.write(place.page, buf),
        };
        result.map_err(|error| self.members.failed(place.member, error))
    }
}

fn check_range(page: PageId, pages: u64, page_count: u64) -> Result<()> {
    if page.0.checked_add(pages).is_none_or(|end| end > page_count) {
        return Err(Error::OutOfRange { page, pages, page_count });
    }
    Ok(())
}

/// A piece of an operation on one member.
struct Part {
    place: Place,
    /// Its bytes in the operation's buffer.
    bytes: Range<usize>,
}

impl Part {
    fn pages(&self) -> usize {
        self.bytes.len() / PAGE_BYTES
    }
}

/// Splits a run of pages at the borders of members.
fn parts(layout: Layout, page: PageId, pages: u64) -> impl Iterator<Item = Part> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == pages {
            return None;
        }
        let place = layout.place(page.plus(done));
        let run = place.run.min(pages - done);
        let [start, end] = [done, done + run]
            .map(|page| usize::try_from(page).expect("within a buffer") * PAGE_BYTES);
        done += run;
        Some(Part { place, bytes: start..end })
    })
}

impl Device for ArrayDevice {
    /// Channels and depths of the members add up. Chunk, mapping and buses are set only if the striping puts chunk i of
    /// the array on channel i mod their number.
    fn geometry(&self) -> Geometry {
        let members = self.members.devices.iter().map(|member| member.geometry());
        let whole = geometry::together(members, self.layout.striping);
        Geometry {
            members: u32::try_from(self.layout.members).unwrap_or(u32::MAX),
            stripe_pages: self.layout.stripe_pages(),
            ..geometry::behind(whole, self.layout.first)
        }
    }

    fn page_count(&self) -> u64 {
        self.layout.page_count(self.members.page_counts())
    }

    /// Grows each member to its share. A longer member keeps its bytes.
    fn grow(&self, page_count: u64) -> Result<()> {
        self.members.check_writable()?;
        let page_count_max = self.layout.page_count_max();
        if page_count > page_count_max {
            return Err(Error::NoSpace {
                wanted_bytes: page_count.saturating_mul(PAGE_BYTES as u64),
                place: format!("an array of {} partitions", self.layout.members),
                reason: format!("its partitions have {page_count_max} pages in all"),
            });
        }
        self.each(|index, member| match self.layout.member_pages(index, page_count) {
            pages if pages > member.page_count() => member.grow(pages),
            _ => Ok(()),
        })
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        Ok(Box::new(ArrayQueue::new(&self.members, self.layout, depth)?))
    }

    fn sync(&self) -> Result<()> {
        self.each(|_, member| member.sync())
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        let count = pages.end.0.saturating_sub(pages.start.0);
        if count == 0 {
            return Ok(());
        }
        check_range(pages.start, count, self.page_count())?;
        self.members.check_writable()?;
        self.each(|index, member| {
            let share = self.layout.shares(index, &pages);
            if share.is_empty() { Ok(()) } else { member.discard(share) }
        })
    }

    /// Returns the first member's clock: members of hardware agree, and so do those of one simulator.
    fn now(&self) -> u64 {
        self.members.devices.first().map_or(0, |member| member.now())
    }

    fn engine(&self) -> EngineReport {
        let devices = &self.members.devices;
        let reports: Vec<EngineReport> = devices.iter().map(|member| member.engine()).collect();
        let names = self.members.names.iter().map(|name| format!(" ({name})"));
        let names = names.chain(std::iter::repeat(String::new()));
        let reasons = reports.iter().zip(names).enumerate();
        let reasons: Vec<String> = reasons
            .map(|(index, (one, name))| format!("member {index}{name}: {}", one.reason))
            .collect();
        let names: Vec<&str> = reports.iter().map(|one| one.name.as_str()).collect();
        EngineReport { name: names.join(", "), reason: reasons.join("; ") }
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(OpKind::Read, page, buf)
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(OpKind::Write, page, buf)
    }
}
