//! An array that knows its members: each has a label, and a wrong one is rejected by its name.
//!
//! A label carries a **generation**, with one law: a member takes generation g + 1 only when all members have durably
//! taken g. So members that a crash left behind are behind by one and no more. Each opening for writing takes two
//! generations before anything else is written. So a copy that was made before it is behind by at least two, which no
//! crash explains, and is rejected. (A copy made while the array was open, or after it was closed and before the next
//! opening, has the generation of the original. Checksums find the former; the latter is the original.)

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::label::{LABEL_PAGES, Label, LabelFault, MEMBERS_MAX};
use super::members::{verify_members, write_label};
use super::striping::Layout;
use super::{ArrayDevice, Members, Striping};
use crate::random_u128;
use crate::{Access, Device, EngineReport, Error, Geometry, PageBuf, PageId, Queue, Result};

/// A device that is, or will become, a member of a [`LabelledArray`].
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name in errors, such as its path.
    pub name: String,
    /// The device, whose first pages are the label's.
    pub device: Arc<dyn Device>,
}

impl Member {
    /// Creates a member of this name.
    pub fn new(name: impl Into<String>, device: Arc<dyn Device>) -> Self {
        Self { name: name.into(), device }
    }

    /// Returns whether the device has the label of a member, whole or damaged. Costs one read of two pages.
    ///
    /// # Errors
    /// A failed read.
    pub fn is_labelled(device: &dyn Device) -> Result<bool> {
        if device.page_count() < LABEL_PAGES {
            return Ok(false);
        }
        let pages = device.read(PageId(0), PageBuf::zeroed(2))?;
        let label = Label::choose([pages.page(0), pages.page(1)]);
        Ok(!matches!(label, Err(LabelFault::Unlabelled { .. })))
    }

    fn fault(&self, fault: LabelFault) -> Error {
        Error::Label { name: self.name.clone(), fault: Box::new(fault) }
    }

    /// Reads its label. Costs one read of two pages.
    pub(super) fn label(&self, index: usize) -> Result<Label> {
        let page_count = self.device.page_count();
        if page_count < LABEL_PAGES {
            let reason = format!("it has {page_count} page(s), and a label takes {LABEL_PAGES}");
            return Err(self.fault(LabelFault::Unlabelled { reason }));
        }
        let read = self.device.read(PageId(0), PageBuf::zeroed(2));
        let pages = read.map_err(|error| self.failed(index, error))?;
        let label = Label::choose([pages.page(0), pages.page(1)]);
        label.map_err(|fault| self.fault(fault))
    }

    fn failed(&self, member: usize, error: Error) -> Error {
        Error::Member { member, name: self.name.clone(), source: Box::new(error) }
    }
}

/// Options of creating an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayOptions {
    /// The distribution of the array's pages over its members.
    pub striping: Striping,
    /// The data of each member begin at a multiple of this number of pages, after the label. Default 256, which is 1
    /// MiB.
    pub align_pages: u64,
    /// The array's id; random by default. Set it only for runs that must repeat.
    pub array_id: Option<u128>,
}

impl ArrayOptions {
    /// Returns options with this striping, and the defaults.
    #[must_use]
    pub const fn new(striping: Striping) -> Self {
        Self { striping, align_pages: 256, array_id: None }
    }
}

/// Several devices as one, each with a label. A missing, foreign, duplicate, older or shortened member is rejected by
/// its name ([`Error::Label`]).
///
/// When it is opened, members may be given in any order; page 0 of the array is on the member that was given first when
/// it was created. There is no protection against the loss of a member.
///
/// ```
/// use std::sync::Arc;
/// use nandex_device::{Access, ArrayOptions, Device, LabelledArray, Member, MemoryDevice, Striping};
///
/// let [a, b] = ["a", "b"].map(|name| Member::new(name, Arc::new(MemoryDevice::new())));
/// let options = ArrayOptions::new(Striping::Extent { pages: 64 });
/// LabelledArray::create(vec![a.clone(), b.clone()], &options)?.grow(1000)?;
/// let array = LabelledArray::open(vec![b, a.clone()], Access::ReadWrite)?;
/// assert_eq!(array.names(), ["a", "b"]);
/// drop(array);
/// let error = LabelledArray::open(vec![a], Access::ReadWrite).unwrap_err();
/// assert!(error.to_string().starts_with("b: member 1 of 2 is missing"));
/// # Ok::<(), nandex_device::Error>(())
/// ```
#[derive(Debug)]
pub struct LabelledArray {
    array: ArrayDevice,
    /// The content of the members' labels, without their places and names.
    newest: Mutex<Label>,
    /// Held while a generation is taken, so that only one is taken at a time.
    taking: Mutex<()>,
}

impl LabelledArray {
    /// Labels the members, whose first two pages must be empty, and combines them.
    ///
    /// Costs, for each member, one read, one growth if it is shorter than the label, one write and one sync.
    ///
    /// # Errors
    /// [`LabelFault::Taken`] if the first pages of a member are not empty, unless they hold the label of an array that
    /// was never grown; [`Error::Array`] if the members do not fit together; [`Error::Member`] with a member's own
    /// failure, such as no space.
    pub fn create(members: Vec<Member>, options: &ArrayOptions) -> Result<Self> {
        let count = members.len();
        let misfit = |reason: String| Error::Array { members: count, reason };
        if count > MEMBERS_MAX {
            return Err(misfit(format!("it can have {MEMBERS_MAX} at most")));
        }
        let first = LABEL_PAGES.checked_next_multiple_of(options.align_pages);
        let first = first.filter(|&first| first > 0).ok_or_else(|| {
            misfit(format!("data cannot begin at a multiple of {} pages", options.align_pages))
        })?;
        for (index, member) in members.iter().enumerate() {
            refuse_taken(member, index)?;
        }
        let label = Label {
            array_id: options.array_id.map_or_else(random_u128, Ok)?,
            generation: 1,
            member: 0,
            striping: options.striping,
            first,
            page_count: 0,
            names: members.iter().map(|member| member.name.clone()).collect(),
        };
        let made = Self::assemble(members, label, Access::ReadWrite)?;
        made.array.each(|_, device| match device.page_count() {
            pages if pages < first => device.grow(first),
            _ => Ok(()),
        })?;
        made.write_labels(&made.label())?;
        Ok(made)
    }

    /// Combines the members of an array again, given in any order.
    ///
    /// For writing it costs one read, two writes and three syncs of each member, and one more write and sync if a crash
    /// left members behind; for reading, only the reads.
    ///
    /// # Errors
    /// [`Error::Label`] with the name of the wrong or missing member, and the fault; [`Error::Array`] if no member is
    /// given; [`Error::Member`] with a member's own failure.
    pub fn open(members: Vec<Member>, access: Access) -> Result<Self> {
        let verified = verify_members(members)?;
        let names = verified.iter().map(|(member, _)| member.name.clone()).collect();
        let generations: Vec<u64> = verified.iter().map(|(_, label)| label.generation).collect();
        let newest = verified.iter().map(|(_, label)| label).max_by_key(|label| label.generation);
        let newest = newest
            .cloned()
            .ok_or_else(|| Error::Array { members: 0, reason: "it needs at least one".into() })?;
        let label = Label { names, ..newest };
        let members = verified.into_iter().map(|(member, _)| member).collect();
        let opened = Self::assemble(members, label, access)?;
        if access == Access::ReadWrite {
            opened.begin(&generations)?;
        }
        Ok(opened)
    }

    fn assemble(members: Vec<Member>, label: Label, access: Access) -> Result<Self> {
        let layout =
            Layout { striping: label.striping, members: members.len(), first: label.first };
        let (names, devices) =
            members.into_iter().map(|member| (member.name, member.device)).unzip();
        let array = ArrayDevice::assemble(Members { devices, names, access }, layout)?;
        Ok(Self { array, newest: Mutex::new(label), taking: Mutex::default() })
    }

    /// Takes two generations past the newest; members that were left behind are updated first.
    fn begin(&self, generations: &[u64]) -> Result<()> {
        // Data of a killed process may still be in a cache; it must be durable before anything builds on it.
        self.array.sync()?;
        let label = self.label();
        let behind = |member: usize| generations[member] < label.generation;
        if (0..generations.len()).any(behind) {
            self.write_label(&label, behind)?;
        }
        for ahead in 1..=2 {
            self.write_labels(&Label { generation: label.generation + ahead, ..label.clone() })?;
        }
        Ok(())
    }

    fn write_labels(&self, label: &Label) -> Result<()> {
        self.write_label(label, |_| true)
    }

    /// Writes the label to some members, makes it durable on all of them, and then uses it.
    fn write_label(&self, label: &Label, which: impl Fn(usize) -> bool) -> Result<()> {
        let members = &self.array.members;
        let chosen = || members.devices.iter().enumerate().filter(|&(index, _)| which(index));
        for (index, device) in chosen() {
            write_label(&**device, &Label { member: index, ..label.clone() })
                .map_err(|error| members.failed(index, error))?;
        }
        for (index, device) in chosen() {
            device.sync().map_err(|error| members.failed(index, error))?;
        }
        *self.newest.lock().expect("no holder of this lock panics") = label.clone();
        Ok(())
    }

    /// Makes it an array that was never grown, durably, so that its members may become those of another: see
    /// [`create`](Self::create). Their bytes stay. A crash leaves it unchanged, or reset, or in a state that can be
    /// reset again.
    ///
    /// # Errors
    /// A failed write or sync of a member.
    pub fn reset(&self) -> Result<()> {
        let _alone = self.taking.lock().expect("no holder of this lock panics");
        let label = self.label();
        self.write_labels(&Label { page_count: 0, generation: label.generation + 1, ..label })
    }

    /// Returns the content of the members' labels, as for member 0.
    #[must_use]
    pub fn label(&self) -> Label {
        self.newest.lock().expect("no holder of this lock panics").clone()
    }

    /// The members' current names, in the array's order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.array.members.names
    }
}

/// Fails if a device contains something in place of the label.
fn refuse_taken(member: &Member, index: usize) -> Result<()> {
    if member.device.page_count() < LABEL_PAGES {
        return Ok(());
    }
    let read = member.device.read(PageId(0), PageBuf::zeroed(2));
    let pages = read.map_err(|error| member.failed(index, error))?;
    let reason = match Label::choose([pages.page(0), pages.page(1)]) {
        Ok(label) if label.is_fresh() => return Ok(()),
        Ok(label) => format!(
            "it is member {} of {} of array {:032x}",
            label.member,
            label.members(),
            label.array_id
        ),
        _ if pages.iter().all(|&byte| byte == 0) => return Ok(()),
        _ => "its first pages are not empty".into(),
    };
    Err(member.fault(LabelFault::Taken { reason }))
}

impl Device for LabelledArray {
    fn geometry(&self) -> Geometry {
        self.array.geometry()
    }

    fn page_count(&self) -> u64 {
        self.array.page_count()
    }

    /// Grows the members, and records their new minimum length in their labels: one generation, which costs two syncs
    /// and a write of each member.
    fn grow(&self, page_count: u64) -> Result<()> {
        let _alone = self.taking.lock().expect("no holder of this lock panics");
        let label = self.label();
        if page_count <= label.page_count {
            return Ok(());
        }
        self.array.grow(page_count)?;
        // A label must not promise a length that a crash could undo.
        self.array.sync()?;
        self.write_labels(&Label { page_count, generation: label.generation + 1, ..label })
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        self.array.queue(depth)
    }

    fn sync(&self) -> Result<()> {
        self.array.sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.array.discard(pages)
    }

    fn now(&self) -> u64 {
        self.array.now()
    }

    fn engine(&self) -> EngineReport {
        self.array.engine()
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.array.read(page, buf)
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.array.write(page, buf)
    }
}
