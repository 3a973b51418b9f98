//! An operation of the flash, from its unit's queue to its end.

use super::slab::NONE;
use crate::ftl::Clean;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OpKind {
    /// Array to register, then over the bus.
    Read,
    /// Over the bus, then register to array.
    Program,
    /// Erases blocks for the host.
    Erase,
    /// Moves pages and erases, before anything after it is served.
    Clean,
    /// As `Clean`, but the host goes first after each page.
    Idle,
}

/// An operation of the flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub kind: OpKind,
    /// The request that is waiting for it, or none.
    pub request: u32,
    pub unit: u32,
    pub plane: u32,
    /// Bytes over the bus.
    pub bytes: u32,
    /// Host pages that leave the write buffer with it.
    pub units: u32,
    pub flash_page: u64,
    pub clean: Clean,
    /// Moves of the cleaning that are done.
    pub moved: u32,
    /// Whether the present move has been read.
    pub has_read: bool,
    /// Syncs that had been requested when it began to count.
    pub epoch: u64,
    pub enqueued_ns: u64,
    /// The time that its unit had been cleaning when it was enqueued.
    pub clean_mark_ns: u64,
    /// The time at which its first phase ended.
    pub first_ns: u64,
    pub queue_ns: u64,
    pub cleaning_ns: u64,
    pub bus_ns: u64,
    pub array_ns: u64,
    /// The next operation in the unit's queue.
    pub next: u32,
    /// The operation that shares its array time, on another plane.
    pub mate: u32,
}

impl Op {
    pub fn new(kind: OpKind, request: u32, unit: u32, plane: u32) -> Self {
        Self {
            kind,
            request,
            unit,
            plane,
            bytes: 0,
            units: 0,
            flash_page: 0,
            clean: Clean::default(),
            moved: 0,
            has_read: false,
            epoch: 0,
            enqueued_ns: 0,
            clean_mark_ns: 0,
            first_ns: 0,
            queue_ns: 0,
            cleaning_ns: 0,
            bus_ns: 0,
            array_ns: 0,
            next: NONE,
            mate: NONE,
        }
    }
}
