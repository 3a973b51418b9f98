//! The label of an array's member, in its first two pages: pure bytes.
//!
//! The generations of a label alternate between the two pages, so a torn write of one leaves the other.
//! docs/reference/format.md draws the bytes.

use super::Striping;
use crate::{PAGE_BYTES, PageId};

/// The format of labels that this build writes, and the newest it reads.
pub(super) const LABEL_VERSION: u16 = 1;
/// Pages at the start of each member that hold labels.
pub(super) const LABEL_PAGES: u64 = 2;
/// The most members of an array: their names must fit into a label.
pub(super) const MEMBERS_MAX: usize = 64;
/// The most bytes of a name that are stored; of longer names the end is stored.
const NAME_BYTES_MAX: usize = 60;

/// The highest generation of an array: never reached, and far below an overflow.
const GENERATION_MAX: u64 = 1 << 62;

const MAGIC: [u8; 4] = *b"ndxa";

/// The label of a member of a [`LabelledArray`](super::LabelledArray).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Names the array.
    pub array_id: u128,
    /// Counts the steps that all members took together; see [`LabelledArray`](super::LabelledArray).
    pub generation: u64,
    /// The index of this member, from zero.
    pub member: usize,
    /// The distribution of the array's pages over its members.
    pub striping: Striping,
    /// The number of pages at the start of each member that the array does not use.
    pub first: u64,
    /// The number of pages that the array has been grown to.
    pub page_count: u64,
    /// The members' names when the array was last opened for writing; one per member.
    pub names: Vec<String>,
}

/// The reason why a device cannot be a member of the array.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LabelFault {
    /// It has no label.
    #[error(
        "it is not a member of an array: {reason}; name the members that the array was created \
         with (if its creation was interrupted, create it again)"
    )]
    Unlabelled {
        /// The content in place of a label.
        reason: String,
    },
    /// Both copies of its label are damaged.
    #[error(
        "its label is damaged: {reason}; replace it with an intact, current copy of this member"
    )]
    Damaged {
        /// The fault of the label.
        reason: String,
    },
    /// Its label has a format that this build does not know.
    #[error(
        "its label has version {found}, and this nandex reads version {supported}; use the nandex \
         that wrote it"
    )]
    Version {
        /// The version of the label.
        found: u16,
        /// The version of this build.
        supported: u16,
    },
    /// It belongs to a different array than the rest.
    #[error(
        "it is member {member} of {members} of array {found:032x}, while {other} belongs to array \
         {expected:032x}; name the members of one array"
    )]
    Foreign {
        /// The index of the member in its own array.
        member: usize,
        /// The number of members of its own array.
        members: usize,
        /// Its own array.
        found: u128,
        /// The array of the others.
        expected: u128,
        /// One of the others.
        other: String,
    },
    /// It has the array's name and a different shape than the rest.
    #[error(
        "its label and that of {other} give the array different shapes; one of the two was altered"
    )]
    Disagrees {
        /// One of the others.
        other: String,
    },
    /// Another device claims to be the same member.
    #[error(
        "it is member {member} of the array, and so is {other}; name each once, and leave out the older \
         if one is a copy (this one has generation {generation}, that one {newest})"
    )]
    Duplicate {
        /// The index of both members.
        member: usize,
        /// The other one.
        other: String,
        /// The generation of this one.
        generation: u64,
        /// The generation of the other one.
        newest: u64,
    },
    /// No device claims to be this member. Its name is that of the last opening.
    #[error(
        "member {member} of {members} is missing; it had this name when the array was last opened for \
         writing; name it as well"
    )]
    Missing {
        /// The index of the missing member.
        member: usize,
        /// The number of members of the array.
        members: usize,
    },
    /// It is an older copy.
    #[error(
        "it is an older copy of member {member}: it has generation {generation}, and {other} has \
         {newest}; put the current one in its place"
    )]
    Stale {
        /// The index of the member.
        member: usize,
        /// Its generation.
        generation: u64,
        /// The generation of the newest copy.
        newest: u64,
        /// The newest.
        other: String,
    },
    /// It is shorter than the array's size.
    #[error(
        "it is too small: it has {pages} pages and the array has data on {pages_min}; replace it \
         with an intact copy of this member"
    )]
    Short {
        /// The number of pages of the member.
        pages: u64,
        /// The number of pages that it must have.
        pages_min: u64,
    },
    /// It contains something already, and must not become a member.
    #[error(
        "{reason}; name another, or overwrite its first {LABEL_PAGES} pages with zeros if its \
         content is no longer needed"
    )]
    Taken {
        /// The content.
        reason: String,
    },
}

impl Label {
    /// The page of the member that this generation is written to.
    #[must_use]
    pub fn place(&self) -> PageId {
        PageId(self.generation % LABEL_PAGES)
    }

    /// The number of members of the array.
    #[must_use]
    pub fn members(&self) -> usize {
        self.names.len()
    }

    /// Returns whether the array is certainly empty. It is until it is grown.
    pub(super) fn is_fresh(&self) -> bool {
        self.page_count == 0
    }

    /// Returns whether both labels give the array the same shape.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let shape = |label: &Self| (label.striping, label.first, label.members());
        shape(self) == shape(other)
    }

    /// Writes the label into a page.
    ///
    /// # Panics
    /// If the page is not [`PAGE_BYTES`] long, or there are more than 64 names.
    pub fn encode(&self, page: &mut [u8]) {
        assert!(page.len() == PAGE_BYTES && self.names.len() <= MEMBERS_MAX, "a label fits");
        let (kind, stripe_pages) = match self.striping {
            Striping::Extent { pages } => (0_u16, pages),
            Striping::Partition { pages } => (1, pages),
        };
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&MAGIC);
        for number in [LABEL_VERSION, kind, short(self.member), short(self.names.len())] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.array_id.to_le_bytes());
        for number in [self.generation, stripe_pages, self.first, self.page_count] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for name in self.names.iter().map(|name| tail(name)) {
            bytes.extend_from_slice(&short(name.len()).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        page.fill(0);
        page[..bytes.len()].copy_from_slice(&bytes);
        seal(page);
    }

    /// Reads a label from a page that may hold anything.
    ///
    /// # Errors
    /// [`LabelFault::Unlabelled`] if it never was a label, [`LabelFault::Damaged`], or [`LabelFault::Version`] for one
    /// of another version.
    pub fn decode(page: &[u8], place: PageId) -> Result<Self, LabelFault> {
        let mut reader = Reader { bytes: page };
        let (sum, magic) = (u32::from_le_bytes(reader.take()?), reader.take::<4>()?);
        if magic != MAGIC {
            return Err(LabelFault::Unlabelled { reason: described(page) });
        }
        let computed = crc32c::crc32c(&page[4..]);
        if sum != computed {
            let reason = format!("its checksum is {sum:#010x} and its bytes give {computed:#010x}");
            return Err(LabelFault::Damaged { reason });
        }
        let version = reader.u16()?;
        if version != LABEL_VERSION {
            return Err(LabelFault::Version { found: version, supported: LABEL_VERSION });
        }
        let label = reader.fields()?;
        label.check(place)?;
        Ok(label)
    }

    /// Rejects labels that no writer writes.
    fn check(&self, place: PageId) -> Result<(), LabelFault> {
        let (Striping::Extent { pages } | Striping::Partition { pages }) = self.striping;
        let members = self.names.len() as u64;
        let whole = pages.checked_mul(members).and_then(|pages| pages.checked_add(self.first));
        let checks = [
            ((1..=GENERATION_MAX).contains(&self.generation), "an impossible generation"),
            (self.place() == place, "a generation that belongs on the other page"),
            (self.member < self.names.len(), "a member past the last"),
            (pages > 0 && whole.is_some(), "stripes of no pages or of too many"),
            (self.first >= LABEL_PAGES, "data in place of the labels"),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(damaged(what)),
            None => Ok(()),
        }
    }

    /// Chooses the valid page of the two at the start of a member: the newer if both are valid.
    ///
    /// # Errors
    /// The fault of both: [`LabelFault::Version`] before [`LabelFault::Damaged`] before [`LabelFault::Unlabelled`].
    pub fn choose(pages: [&[u8]; 2]) -> Result<Self, LabelFault> {
        let [first, second] = [0, 1].map(|index| Self::decode(pages[index], PageId(index as u64)));
        match (first, second) {
            (Err(newer @ LabelFault::Version { .. }), _)
            | (_, Err(newer @ LabelFault::Version { .. })) => Err(newer),
            (Ok(first), Ok(second)) if first.generation > second.generation => Ok(first),
            (_, Ok(label)) | (Ok(label), _) => Ok(label),
            (Err(LabelFault::Unlabelled { .. }), Err(damage @ LabelFault::Damaged { .. })) => {
                Err(damage)
            }
            (Err(fault), Err(_)) => Err(fault),
        }
    }
}

/// The bytes of a label that are not read yet.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], LabelFault> {
        let (taken, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| damaged("names past its end"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, LabelFault> {
        self.take().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, LabelFault> {
        self.take().map(u64::from_le_bytes)
    }

    /// Reads all fields after the version.
    fn fields(&mut self) -> Result<Label, LabelFault> {
        let (kind, member, members) = (self.u16()?, self.u16()?, usize::from(self.u16()?));
        let array_id = u128::from_le_bytes(self.take()?);
        let (generation, pages) = (self.u64()?, self.u64()?);
        let (first, page_count) = (self.u64()?, self.u64()?);
        let striping = match kind {
            0 => Striping::Extent { pages },
            1 => Striping::Partition { pages },
            _ => return Err(damaged("an unknown striping")),
        };
        if members > MEMBERS_MAX {
            return Err(damaged("more than 64 members"));
        }
        let names = (0..members).map(|_| self.name()).collect::<Result<_, _>>()?;
        let member = usize::from(member);
        Ok(Label { array_id, generation, member, striping, first, page_count, names })
    }

    fn name(&mut self) -> Result<String, LabelFault> {
        let length = usize::from(self.u16()?);
        if length > NAME_BYTES_MAX {
            return Err(damaged("a name of more than 60 bytes"));
        }
        let (name, rest) =
            self.bytes.split_at_checked(length).ok_or_else(|| damaged("names past its end"))?;
        self.bytes = rest;
        String::from_utf8(name.to_vec()).map_err(|_| damaged("a name that is not UTF-8"))
    }
}

fn seal(page: &mut [u8]) {
    let sum = crc32c::crc32c(&page[4..]);
    page[..4].copy_from_slice(&sum.to_le_bytes());
}

fn damaged(what: &str) -> LabelFault {
    LabelFault::Damaged { reason: format!("it has {what}") }
}

fn short(number: usize) -> u16 {
    u16::try_from(number).expect("members and lengths of names are below 65536")
}

/// Returns the end of a name, which is more specific than its beginning, as much as fits.
fn tail(name: &str) -> &str {
    let start = name.len().saturating_sub(NAME_BYTES_MAX);
    let start = (start..=name.len()).find(|&at| name.is_char_boundary(at));
    start.map_or("", |start| &name[start..])
}

/// Describes the bytes in place of a label.
pub(super) fn described(page: &[u8]) -> String {
    if page.iter().all(|&byte| byte == 0) {
        return "its first pages are all zeros".into();
    }
    let start = &page[..page.len().min(8)];
    format!("it begins with {start:02x?} where a label has \"ndxa\" at byte 4")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the label that docs/reference/format.md shows byte by byte.
    fn label() -> Label {
        Label {
            array_id: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
            generation: 7,
            member: 1,
            striping: Striping::Extent { pages: 256 },
            first: 512,
            page_count: 9000,
            names: vec!["a.nandex".into(), "b.nandex".into()],
        }
    }

    fn page(label: &Label) -> Vec<u8> {
        let mut page = vec![0xee; PAGE_BYTES];
        label.encode(&mut page);
        page
    }

    fn altered(label: &Label, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut page = page(label);
        page[at..at + bytes.len()].copy_from_slice(bytes);
        seal(&mut page);
        page
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let page = page(&label());
        let hex = |bytes: &[u8]| bytes.iter().map(|it| format!("{it:02x}")).collect::<String>();
        assert_eq!(hex(&page[..16]), GOLDEN_HEAD);
        assert_eq!(hex(&page[16..32]), "7766554433221100efcdab8967452301");
        assert_eq!(
            hex(&page[32..64]),
            "0700000000000000000100000000000000020000000000002823000000000000"
        );
        assert_eq!(&page[64..84], b"\x08\0a.nandex\x08\0b.nandex");
        assert!(page[84..].iter().all(|&byte| byte == 0));
        assert_eq!(Label::decode(&page, PageId(1)), Ok(label()));
    }

    /// The checksum of these bytes, computed bit by bit, and what follows it.
    const GOLDEN_HEAD: &str = "e273fad96e6478610100000001000200";

    #[test]
    fn every_flipped_bit_is_noticed() {
        let whole = page(&label());
        for bit in 0..PAGE_BYTES * 8 {
            let mut page = whole.clone();
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(Label::decode(&page, PageId(1)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_newer_page_is_chosen_and_a_torn_one_passed_over() {
        let (even, odd) = (Label { generation: 8, ..label() }, label());
        let (new, old) = (page(&even), page(&odd));
        assert_eq!(Label::choose([&new, &old]), Ok(even));
        let mut torn = new.clone();
        torn[40..].fill(0xaa);
        assert_eq!(Label::choose([&torn, &old]), Ok(odd.clone()));
        assert_eq!(Label::choose([&[0; PAGE_BYTES], &old]), Ok(odd));
        let fault = Label::choose([&torn, &torn]).unwrap_err();
        assert!(matches!(fault, LabelFault::Damaged { .. }), "{fault}");
        let fault = Label::choose([&[0; PAGE_BYTES], &[7; PAGE_BYTES]]).unwrap_err();
        assert!(matches!(fault, LabelFault::Unlabelled { .. }), "{fault}");
        let fault = Label::choose([&[0; PAGE_BYTES], &torn]).unwrap_err();
        assert!(matches!(fault, LabelFault::Damaged { .. }), "{fault}");
    }

    #[test]
    fn what_no_writer_writes_is_refused_although_its_checksum_is_right() {
        let alterations: [(usize, &[u8]); 11] = [
            (10, &[2]),
            (12, &[2]),
            (14, &[0]),
            (14, &[65]),
            (32, &[0, 0, 0, 0, 0, 0, 0, 0]),
            (32, &[8]),
            (40, &[0; 8]),
            (40, &[0xff; 8]),
            (48, &[1, 0, 0]),
            (64, &[61]),
            (66, &[0xff]),
        ];
        for (at, bytes) in alterations {
            let fault = Label::decode(&altered(&label(), at, bytes), PageId(1)).unwrap_err();
            assert!(matches!(fault, LabelFault::Damaged { .. }), "{at}: {fault}");
        }
        let newer = altered(&label(), 8, &[2]);
        let fault = Label::choose([&page(&Label { generation: 8, ..label() }), &newer]);
        assert_eq!(fault, Err(LabelFault::Version { found: 2, supported: 1 }));
    }

    #[test]
    fn names_keep_their_ends_and_the_most_of_them_fit() {
        let name = format!("/a/long/way/{}/d\u{e4}ta.nandex", "x".repeat(80));
        let most = Label { member: 63, names: vec![name.clone(); 64], ..label() };
        let read = Label::decode(&page(&most), PageId(1)).unwrap();
        assert!(read.names.iter().all(|short| name.ends_with(short) && short.len() == 60));
        let umlauts = Label { names: vec!["\u{e4}".repeat(31); 2], ..label() };
        let read = Label::decode(&page(&umlauts), PageId(1)).unwrap();
        assert_eq!(read.names[0], "\u{e4}".repeat(30));
        let odd = Label { names: vec![format!("{}x", "\u{e4}".repeat(31)); 2], ..label() };
        let read = Label::decode(&page(&odd), PageId(1)).unwrap();
        assert_eq!(read.names[0].len(), 59);
    }
}
