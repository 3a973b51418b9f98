//! The history of an image, from which it can be reproduced elsewhere.

use nandex_device::PAGE_BYTES;

use super::Image;
use super::change::Change;

/// A step in the life of an image.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Launch(u64, Change),
    Land(u64),
    Sync,
    Drop,
    Grow(u64),
    BeginGrowth(u64),
}

/// Every write, sync, discard and growth of a device in their order, up to a power cut: see
/// [`SimDevice::history`](crate::SimDevice::history).
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) events: Vec<Event>,
}

impl History {
    /// Returns the image that the cut found, reproduced from the one at the beginning of the history.
    #[must_use]
    pub fn replay(&self, mut image: Image) -> Image {
        for event in &self.events {
            match event {
                Event::Launch(number, change) => image.launch(*number, change.clone()),
                Event::Land(number) => image.land(*number),
                Event::Sync => image.sync(),
                Event::Drop => image.drop_unsynced(),
                Event::Grow(page_count) => image.grow(*page_count),
                Event::BeginGrowth(page_count) => image.begin_growth(*page_count),
            }
        }
        image
    }

    /// Returns the number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns its bytes, for a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for event in &self.events {
            let mut put = |numbers: &[u64]| {
                out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            };
            match event {
                Event::Land(number) => put(&[0, *number]),
                Event::Sync => put(&[1, 0]),
                Event::Drop => put(&[2, 0]),
                Event::Grow(page_count) => put(&[3, *page_count]),
                Event::BeginGrowth(page_count) => put(&[4, *page_count]),
                Event::Launch(number, change) => match change.parts() {
                    (start, Err(count)) => put(&[5, *number, start, count]),
                    (start, Ok(pages)) => {
                        put(&[6, *number, start, pages.len() as u64]);
                        pages.iter().for_each(|page| out.extend_from_slice(&page[..]));
                    }
                },
            }
        }
        out
    }

    /// Reads the bytes of [`encode`](Self::encode); `None` for other bytes.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            let (kind, number) = (take_number(&mut bytes)?, take_number(&mut bytes)?);
            events.push(match kind {
                0 => Event::Land(number),
                1 => Event::Sync,
                2 => Event::Drop,
                3 => Event::Grow(number),
                4 => Event::BeginGrowth(number),
                5 | 6 => {
                    let (start, count) = (take_number(&mut bytes)?, take_number(&mut bytes)?);
                    Event::Launch(number, take_change(kind, start, count, &mut bytes)?)
                }
                _ => return None,
            });
        }
        Some(Self { events })
    }
}

fn take_change(kind: u64, start: u64, count: u64, bytes: &mut &[u8]) -> Option<Change> {
    let end = start.checked_add(count)?;
    if kind == 5 {
        return Some(Change::discard(start..end));
    }
    let length = usize::try_from(count).ok()?.checked_mul(PAGE_BYTES)?;
    let (pages, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(Change::write(start, pages))
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}
