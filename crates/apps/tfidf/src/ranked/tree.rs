//! Finds terms in the tree of a rank index.

use std::ops::Range;

use super::format::{self, TermEntry};
use super::read::refuse;
use crate::Result;
use crate::corpus::{RankedBlocks, RankedInfo, Section};

/// The data of a term in a rank index, and the place of its postings among all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) entry: TermEntry,
    pub(super) postings: Range<u64>,
}

/// The tree, with the last read node of each level.
pub(super) struct Tree<'c> {
    blocks: RankedBlocks<'c>,
    root: u32,
    /// The leaf first.
    path: Vec<Option<(u32, Vec<u8>)>>,
}

impl<'c> Tree<'c> {
    pub(super) fn new(blocks: RankedBlocks<'c>, info: &RankedInfo) -> Self {
        // An impossible height is detected by its nodes.
        let height = info.height.min(64) as usize;
        Self { blocks, root: info.root, path: vec![None; height + 1] }
    }

    /// Returns the data of a term; `None` if it is absent. Costs a read for each level, except for nodes that the
    /// previous term also needed.
    pub(super) fn find(&mut self, text: &[u8]) -> Result<Option<Found>> {
        let mut number = self.root;
        for level in (1..self.path.len()).rev() {
            let Some(child) = child_of(self.node(level, number)?, text)? else { return Ok(None) };
            number = child;
        }
        find_in(self.node(0, number)?, text)
    }

    fn node(&mut self, level: usize, number: u32) -> Result<&[u8]> {
        let held = &mut self.path[level];
        if held.as_ref().is_none_or(|(held, _)| *held != number) {
            let mut read =
                self.blocks.get_many(Section::Nodes, number..number.saturating_add(1))?;
            let node = read.pop().ok_or_else(|| refuse("a node", "none"))?;
            *held = Some((number, node));
        }
        Ok(held.as_ref().map_or(&[], |(_, node)| node))
    }
}

/// Returns the last child whose first text is not after this one.
fn child_of(node: &[u8], text: &[u8]) -> Result<Option<u32>> {
    let (mut at, mut last) = (0, None);
    while at < node.len() {
        let child = format::child(node, at).ok_or_else(|| refuse("a child", "other bytes"))?;
        let (first, number, end) = child;
        if &node[first] > text {
            break;
        }
        (at, last) = (end, Some(number));
    }
    Ok(last)
}

fn find_in(leaf: &[u8], text: &[u8]) -> Result<Option<Found>> {
    let start = leaf.first_chunk::<8>().ok_or_else(|| refuse("a leaf", "fewer than 8 bytes"))?;
    let (mut start, mut at) = (u64::from_le_bytes(*start), 8);
    while at < leaf.len() {
        let term = format::term(leaf, at).ok_or_else(|| refuse("a term", "other bytes"))?;
        let (found, entry, end) = term;
        let postings_end = start.checked_add(entry.bytes);
        let postings_end = postings_end.ok_or_else(|| refuse("postings", "more than 2^64"))?;
        if &leaf[found] == text {
            return Ok(Some(Found { entry, postings: start..postings_end }));
        }
        (start, at) = (postings_end, end);
    }
    Ok(None)
}
