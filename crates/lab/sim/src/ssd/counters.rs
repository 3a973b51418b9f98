//! The work of an SSD and the use of its parts.

use crate::ftl::FtlCounts;

/// The place of an activity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resource {
    /// A unit of flash that works on one operation at a time, counted over the device.
    Unit(u32),
    /// The bus of a channel.
    Bus(u32),
    /// The controller.
    Controller,
    /// The link, towards the device (both ways, if it is not duplex).
    LinkIn,
    /// The link, towards the host.
    LinkOut,
}

/// An activity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Activity {
    /// Array to register.
    Read,
    /// Register to array.
    Program,
    /// Moving pages and erasing, to free blocks.
    Clean,
    /// Erasing for the host, on a raw chip.
    Erase,
    /// Commands or data on a bus or the link.
    Transfer,
    /// The controller's work.
    Command,
}

/// A period in which a resource was busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The busy resource.
    pub resource: Resource,
    /// Its activity.
    pub activity: Activity,
    /// The beginning.
    pub start_ns: u64,
    /// The end.
    pub end_ns: u64,
    /// The request that it was for; `None` for the device's own work.
    pub token: Option<u64>,
}

/// The work of an SSD and the use of its parts since it was made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SsdCounters {
    /// Requests ended, of any kind.
    pub requests: u64,
    /// Flash pages read for the host.
    pub flash_reads: u64,
    /// Operations of waiting requests that found their data in the write buffer or nowhere.
    pub reads_without_flash: u64,
    /// Time in which each unit of flash was busy with the host's pages, in nanoseconds.
    pub unit_busy_ns: Vec<u64>,
    /// Time in which each unit of flash was cleaning.
    pub unit_clean_ns: Vec<u64>,
    /// Time in which each bus was busy.
    pub bus_busy_ns: Vec<u64>,
    /// Time in which the controller was busy.
    pub controller_busy_ns: u64,
    /// Time in which the link was busy, both ways together.
    pub link_busy_ns: u64,
    /// The work of the translation layer.
    pub ftl: FtlCounts,
}

/// A record of spans up to a limit, which counts the others.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub spans: Vec<Span>,
    pub space: usize,
    pub missed: u64,
}

impl Recorder {
    #[inline]
    pub fn record(
        &mut self,
        resource: Resource,
        activity: Activity,
        (start_ns, end_ns): (u64, u64),
        token: Option<u64>,
    ) {
        if self.space == 0 || start_ns == end_ns {
            return;
        }
        if self.spans.len() < self.space {
            self.spans.push(Span { resource, activity, start_ns, end_ns, token });
        } else {
            self.missed += 1;
        }
    }
}
