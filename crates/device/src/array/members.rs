//! The members of an array and their order: the checks of opening, one after another.

use std::collections::HashMap;

use super::label::{LABEL_PAGES, Label, LabelFault};
use super::labelled::Member;
use super::striping::Layout;
use crate::{Device, Error, PageBuf, Result};

/// A member and its label.
type Labelled = (Member, Label);

/// Reads all labels, rejects members that do not belong and reports missing ones, and sorts the rest.
pub(super) fn verify_members(members: Vec<Member>) -> Result<Vec<Labelled>> {
    let with_label = |(index, member): (usize, Member)| {
        let label = member.label(index)?;
        Ok((member, label))
    };
    let mut members: Vec<Labelled> =
        members.into_iter().enumerate().map(with_label).collect::<Result<_>>()?;
    refuse_foreign(&members)?;
    // Of two with the same index, the newer comes first.
    members.sort_by_key(|(_, label)| (label.member, u64::MAX - label.generation));
    refuse_duplicate(&members)?;
    refuse_missing(&members)?;
    refuse_stale(&members)?;
    refuse_short(&members)?;
    Ok(members)
}

fn fault(member: &Member, fault: LabelFault) -> Error {
    Error::Label { name: member.name.clone(), fault: Box::new(fault) }
}

/// Fails if a member belongs to another array than the one with the most members; of several such arrays, that of the
/// first member.
fn refuse_foreign(members: &[Labelled]) -> Result<()> {
    let mut votes: HashMap<u128, usize> = HashMap::new();
    members.iter().for_each(|(_, label)| *votes.entry(label.array_id).or_default() += 1);
    let most = votes.values().max();
    let host = members.iter().find(|(_, label)| votes.get(&label.array_id) == most);
    let Some((host, expected)) = host else { return Ok(()) };
    for (member, label) in members {
        if label.array_id != expected.array_id {
            let (count, other) = (label.members(), host.name.clone());
            let (found, expected, index) = (label.array_id, expected.array_id, label.member);
            let foreign =
                LabelFault::Foreign { member: index, members: count, found, expected, other };
            return Err(fault(member, foreign));
        }
        if !label.agrees(expected) {
            return Err(fault(member, LabelFault::Disagrees { other: host.name.clone() }));
        }
    }
    Ok(())
}

fn refuse_duplicate(members: &[Labelled]) -> Result<()> {
    for pair in members.windows(2) {
        let [(newer, newest), (older, label)] = pair else { continue };
        if newest.member == label.member {
            let duplicate = LabelFault::Duplicate {
                member: label.member,
                other: newer.name.clone(),
                generation: label.generation,
                newest: newest.generation,
            };
            return Err(fault(older, duplicate));
        }
    }
    Ok(())
}

/// Fails if a member is missing. Expects no duplicates, and the members in order.
fn refuse_missing(members: &[Labelled]) -> Result<()> {
    let newest = members.iter().map(|(_, label)| label).max_by_key(|label| label.generation);
    let Some(newest) = newest else { return Ok(()) };
    let is_there = |index: usize| members.iter().any(|(_, label)| label.member == index);
    let missing = newest.names.iter().enumerate().find(|&(index, _)| !is_there(index));
    match missing {
        None => Ok(()),
        Some((member, name)) => {
            let fault = LabelFault::Missing { member, members: newest.members() };
            Err(Error::Label { name: name.clone(), fault: Box::new(fault) })
        }
    }
}

fn refuse_stale(members: &[Labelled]) -> Result<()> {
    let Some((other, newest)) = members.iter().max_by_key(|(_, label)| label.generation) else {
        return Ok(());
    };
    let behind = |label: &Label| newest.generation - label.generation;
    let Some((member, label)) = members.iter().find(|(_, label)| behind(label) > 1) else {
        return Ok(());
    };
    let stale = LabelFault::Stale {
        member: label.member,
        generation: label.generation,
        newest: newest.generation,
        other: other.name.clone(),
    };
    Err(fault(member, stale))
}

/// Fails if a member is shorter than the array's size. All members had their pages before the first label recorded the
/// size.
fn refuse_short(members: &[Labelled]) -> Result<()> {
    let page_count = members.iter().map(|(_, label)| label.page_count).max().unwrap_or(0);
    for (index, (member, label)) in members.iter().enumerate() {
        let layout =
            Layout { striping: label.striping, members: members.len(), first: label.first };
        let (pages, pages_min) =
            (member.device.page_count(), layout.member_pages(index, page_count));
        if pages < pages_min {
            return Err(fault(member, LabelFault::Short { pages, pages_min }));
        }
    }
    Ok(())
}

/// Writes a label to its page of the member; it is durable after the next sync. On a member that never had a label, the
/// other page is cleared too.
pub(super) fn write_label(device: &dyn Device, label: &Label) -> Result<()> {
    if label.generation > 1 {
        let mut page = PageBuf::zeroed(1);
        label.encode(&mut page);
        return device.write(label.place(), page).map(drop);
    }
    let mut pages = PageBuf::zeroed(usize::try_from(LABEL_PAGES).expect("two"));
    label.encode(pages.page_mut(usize::try_from(label.place().0).expect("one of two")));
    device.write(crate::PageId(0), pages).map(drop)
}
