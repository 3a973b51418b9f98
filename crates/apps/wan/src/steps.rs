//! Steps: the assembly of a segment from known containers and new chunks.
//!
//! Each step begins with the number of its chunks, doubled, and 1 more if they are new. Copied chunks come from one
//! container, one after the other: its number, as the difference from the last one, and the first chunk, as the
//! difference from the chunk after the last copy. New chunks have a length each.

use std::ops::Range;

use crate::Result;
use crate::fields::{Fields, put_difference, put_varint};
use crate::segment::SegmentLimits;

/// A step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step<C> {
    /// These chunks of a container.
    Copy(C, Range<usize>),
    /// New chunks of these lengths.
    New(Vec<usize>),
}

impl<C> Step<C> {
    /// Returns the same step with another designation of the container.
    pub(crate) fn map<D>(&self, map: impl FnOnce(&C) -> D) -> Step<D> {
        match self {
            Self::Copy(container, chunks) => Step::Copy(map(container), chunks.clone()),
            Self::New(lengths) => Step::New(lengths.clone()),
        }
    }
}

/// Encodes steps whose containers are numbers.
pub(crate) fn encode(steps: &[Step<u64>]) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut container, mut chunk) = (0, 0);
    for step in steps {
        match step {
            Step::Copy(number, chunks) => {
                put_varint(&mut out, 2 * chunks.len() as u64);
                put_difference(&mut out, *number, container);
                let expected = if *number == container { chunk } else { 0 };
                put_difference(&mut out, chunks.start as u64, expected);
                (container, chunk) = (*number, chunks.end as u64);
            }
            Step::New(lengths) => {
                put_varint(&mut out, 2 * lengths.len() as u64 + 1);
                lengths.iter().for_each(|length| put_varint(&mut out, *length as u64));
            }
        }
    }
    out
}

/// Decodes steps from untrusted bytes.
///
/// # Errors
/// [`Error::Frame`](crate::Error::Frame) for no steps, more chunks than the limits allow, and a chunk without bytes.
pub(crate) fn decode(bytes: &[u8], limits: SegmentLimits, frame: u64) -> Result<Vec<Step<u64>>> {
    let mut fields = Fields::new(bytes, frame);
    let mut steps = Vec::new();
    let (mut container, mut chunk, mut left) = (0, 0, limits.chunks_max);
    while !fields.is_empty() {
        let head = fields.at_most("chunks of a step", 2 * left as u64 + 1)?;
        let count = head / 2;
        if count == 0 {
            return Err(fields.refuse("expected chunks in a step, found none".into()));
        }
        left = left.checked_sub(count).ok_or_else(|| fields.refuse("too many chunks".into()))?;
        if head % 2 == 1 {
            steps.push(Step::New(lengths(&mut fields, count, limits)?));
            continue;
        }
        let number = fields.difference(container)?;
        let expected = if number == container { chunk } else { 0 };
        let start = fields.difference(expected)?;
        let end = start.checked_add(count as u64).filter(|end| *end <= u64::from(u32::MAX));
        let end = end.ok_or_else(|| fields.refuse(format!("chunk {start} of a container")))?;
        steps.push(Step::Copy(number, start as usize..end as usize));
        (container, chunk) = (number, end);
    }
    Ok(steps)
}

/// Decodes the lengths of new chunks. None is empty: copies of empty chunks would cost a container each and give
/// nothing.
fn lengths(fields: &mut Fields<'_>, count: usize, limits: SegmentLimits) -> Result<Vec<usize>> {
    let length = |_| match fields.at_most("bytes of a chunk", limits.bytes_max as u64)? {
        0 => Err(fields.refuse("expected bytes in a chunk, found none".into())),
        bytes => Ok(bytes),
    };
    (0..count).map(length).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::SEGMENT_CHUNKS_MAX;

    fn decode(bytes: &[u8], frame: u64) -> Result<Vec<Step<u64>>> {
        super::decode(bytes, SegmentLimits::default(), frame)
    }

    fn step() -> impl Strategy<Value = Step<u64>> {
        prop_oneof![
            (any::<u32>(), 0..1000_usize, 1..50_usize)
                .prop_map(|(number, start, count)| Step::Copy(number.into(), start..start + count)),
            prop::collection::vec(1..100_000_usize, 1..20).prop_map(Step::New),
        ]
    }

    proptest! {
        #[test]
        fn steps_are_read_as_they_were_written(steps in prop::collection::vec(step(), 0..30)) {
            prop_assert_eq!(decode(&encode(&steps), 0).unwrap(), steps);
        }

        #[test]
        fn any_bytes_are_steps_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(steps) = decode(&bytes, 0) {
                let chunks: usize = steps.iter().map(|step| match step {
                    Step::Copy(_, chunks) => chunks.len(),
                    Step::New(lengths) => lengths.len(),
                }).sum();
                prop_assert!(chunks <= SEGMENT_CHUNKS_MAX);
            }
        }
    }

    #[test]
    fn copies_in_a_row_take_three_bytes_and_too_many_chunks_are_refused() {
        let steps = [Step::Copy(0, 0..9), Step::Copy(1, 0..9), Step::Copy(1, 9..12)];
        assert_eq!(encode(&steps).len(), 9);
        let many: Vec<_> = (0..2).map(|it| Step::Copy(it, 0..40_000)).collect();
        assert!(decode(&encode(&many), 3).unwrap_err().to_string().contains("frame 3"));
        for bytes in [&[0][..], &[3, 0]] {
            assert!(decode(bytes, 0).unwrap_err().to_string().contains("found none"));
        }
        let limits = SegmentLimits { chunks_max: 8, ..SegmentLimits::default() };
        assert!(super::decode(&encode(&steps[..1]), limits, 0).is_err());
    }
}
