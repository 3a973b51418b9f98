//! The errors of a drive, each with the place, the remedy and the specification's result code.

use crate::ResultCode;

/// The result of a call of a drive.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a drive.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The volume, the index or the value log failed.
    #[error("the drive: {0}")]
    Index(#[from] nandex::Error),
    /// The volume failed.
    #[error("the drive: {0}")]
    Store(#[from] nandex::raw::store::Error),
    /// A part of the drive's own data that it cannot have written.
    #[error(
        "the drive's {what} is damaged: expected {expected}, found {found}; check the volume, and restore it from a copy"
    )]
    Damaged {
        /// `configuration` or `list of key spaces`.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The value found.
        found: String,
    },
    /// An invalid configuration.
    #[error("{field}: {reason}")]
    Config {
        /// The name of the field.
        field: &'static str,
        /// The fault of the value, and a value that would work.
        reason: String,
    },
    /// The volume has no drive of this name.
    #[error("there is no drive {name:?} in this volume; create one, or name another volume")]
    NoDrive {
        /// The name.
        name: String,
    },
    /// A call after the drive was closed.
    #[error("the drive was closed; open it again")]
    Closed,
    /// The drive is full.
    #[error(
        "the drive is full: {used} of {capacity} bytes are in use and {needed} more are needed; delete pairs, or create it with more capacity"
    )]
    DriveFull {
        /// The bytes that pairs take, with their headers.
        used: u64,
        /// The bytes that they may take.
        capacity: u64,
        /// The bytes that were needed.
        needed: u64,
    },
    /// The index has as many entries as it was sized for.
    #[error(
        "the drive holds {pairs} pairs, which is as many as its index was made for; delete some, or create it for more"
    )]
    PairsFull {
        /// The number of pairs in it.
        pairs: u64,
    },
    /// A key space whose limit exceeds the rest of the drive.
    #[error(
        "a key space of {asked} bytes: {free} bytes of the drive are in no other's limit; ask for less, or for 0, which is no limit"
    )]
    SpaceTooLarge {
        /// The requested limit.
        asked: u64,
        /// The bytes that are left.
        free: u64,
    },
    /// The drive has the most key spaces that it may have.
    #[error("the drive has {count} key spaces, its limit; delete one first")]
    SpacesFull {
        /// The number of key spaces.
        count: usize,
    },
    /// The key space has reached its limit.
    #[error(
        "key space {name:?} is full: {used} of {limit} bytes of keys and values are in use and {needed} more are needed; delete pairs, or create one with a higher limit"
    )]
    SpaceFull {
        /// Its name.
        name: String,
        /// The bytes of keys and values in it.
        used: u64,
        /// The most bytes in it.
        limit: u64,
        /// The bytes that were needed.
        needed: u64,
    },
    /// A key space of this name exists.
    #[error("key space {name:?} exists; open it, or choose another name")]
    SpaceExists {
        /// The name.
        name: String,
    },
    /// A list that would begin past its end.
    #[error("no key space has the index {index}: there are {count}")]
    NoSpaceAt {
        /// The index.
        index: usize,
        /// The number of key spaces.
        count: usize,
    },
    /// An invalid name of a key space.
    #[error("a name of {bytes} bytes: a key space has a name of 1 to 255 bytes")]
    SpaceName {
        /// The number of its bytes.
        bytes: usize,
    },
    /// There is no key space of this name.
    #[error("there is no key space {name:?}; create it, or list those that exist")]
    NoSpace {
        /// The name.
        name: String,
    },
    /// A handle that was closed.
    #[error("key space {name:?} was closed by this handle; open it again")]
    SpaceClosed {
        /// The name.
        name: String,
    },
    /// The key space is open already.
    #[error("key space {name:?} is open already; close it first, or share its handle")]
    SpaceIsOpen {
        /// The name.
        name: String,
    },
    /// A filter that no key can pass.
    #[error(
        "the bit pattern {pattern:08x} has bits outside of the mask {mask:08x}, so no key can pass; clear them"
    )]
    Filter {
        /// The mask, its first byte at the left.
        mask: u32,
        /// The pattern.
        pattern: u32,
    },
    /// The most iterators that may be open are open.
    #[error("{count} iterators are open, the drive's limit; close one first")]
    IteratorsFull {
        /// The number of open iterators.
        count: usize,
    },
    /// No iterator has this number.
    #[error("no iterator {number} is open in key space {name:?}")]
    NoIterator {
        /// The number.
        number: u8,
        /// The key space.
        name: String,
    },
    /// The same iterator is open already.
    #[error(
        "an iterator with this filter is open in key space {name:?}, number {number}; use or close it"
    )]
    IteratorIsOpen {
        /// The key space.
        name: String,
        /// Its number.
        number: u8,
    },
    /// A key that is too short or too long.
    #[error("a key of {found} bytes: this drive takes keys of {min} to {max} bytes")]
    KeyLength {
        /// The number of its bytes.
        found: usize,
        /// The fewest bytes.
        min: usize,
        /// The most bytes.
        max: usize,
    },
    /// The key is absent.
    #[error("the key is not there")]
    NoKey,
    /// An option that this drive does not support.
    #[error("{what}: {found}; this drive has {choices}")]
    Option {
        /// The name of the option.
        what: &'static str,
        /// The value found.
        found: String,
        /// The valid values.
        choices: &'static str,
    },
    /// A missing or invalid parameter.
    #[error("{what}: {reason}")]
    Param {
        /// The name of the parameter.
        what: &'static str,
        /// The fault.
        reason: &'static str,
    },
    /// A value that is too long.
    #[error("a value of {found} bytes: this drive takes values of at most {max} bytes")]
    ValueLength {
        /// The number of its bytes, including those to append.
        found: u64,
        /// The most bytes.
        max: u64,
    },
    /// A buffer that is too short.
    #[error("a buffer of {found} bytes: {needed} are needed; give a longer one")]
    Buffer {
        /// The bytes that were needed.
        needed: u64,
        /// The bytes of the buffer.
        found: u64,
    },
    /// An offset past the end of a value.
    #[error("offset {offset} of a value of {value_bytes} bytes; begin before its end")]
    Offset {
        /// The offset.
        offset: u64,
        /// The bytes of the value.
        value_bytes: u64,
    },
    /// An offset that is not a multiple of the unit.
    #[error("offset {offset} is not a multiple of {unit}, the drive's unit of offsets")]
    Misaligned {
        /// The offset.
        offset: u64,
        /// The unit.
        unit: u64,
    },
    /// A key that exists and may not be overwritten.
    #[error("the key exists, and the store must not overwrite it")]
    NoOverwrite,
    /// The queue holds as many commands as its depth.
    #[error("the queue holds {depth} commands, its depth; poll it first")]
    QueueFull {
        /// Its depth.
        depth: usize,
    },
    /// An update in a batch whose acknowledgement failed.
    #[error("the batch that this command was in is not durable: {reason}; open the drive again")]
    Unacknowledged {
        /// The reason.
        reason: String,
    },
    /// The model of operations per second has no answer.
    #[error(
        "values of {value_bytes} bytes: the model of operations each second holds up to {max} bytes, and gives less than none above; use shorter values, or the device's own time"
    )]
    ModelRange {
        /// The bytes of the value.
        value_bytes: u64,
        /// The most bytes.
        max: u64,
    },
    /// A line of a trace that does not parse.
    #[error("{place}:{line}: {reason}")]
    Trace {
        /// The file.
        place: String,
        /// The line, from 1.
        line: u64,
        /// The expected and the found text.
        reason: String,
    },
}

impl Error {
    /// Returns the specification's code for it.
    #[must_use]
    pub fn code(&self) -> ResultCode {
        use ResultCode as Code;
        match self {
            Self::Index(nandex::Error::ValuesFull { .. } | nandex::Error::Full { .. })
            | Self::Index(nandex::Error::GrowthStopped { .. })
            | Self::DriveFull { .. }
            | Self::PairsFull { .. }
            | Self::SpaceTooLarge { .. }
            | Self::SpacesFull { .. } => Code::DeviceCapacity,
            Self::Index(_)
            | Self::Store(_)
            | Self::Damaged { .. }
            | Self::Unacknowledged { .. }
            | Self::QueueFull { .. } => Code::SysIo,
            Self::NoDrive { .. } => Code::DeviceNotExist,
            Self::Closed => Code::DeviceNotOpened,
            Self::SpaceFull { .. } => Code::SpaceCapacity,
            Self::SpaceExists { .. } => Code::SpaceExist,
            Self::NoSpaceAt { .. } => Code::SpaceIndex,
            Self::SpaceName { .. } => Code::SpaceName,
            Self::NoSpace { .. } => Code::SpaceNotExist,
            Self::SpaceClosed { .. } => Code::SpaceNotOpen,
            Self::SpaceIsOpen { .. } => Code::SpaceOpen,
            Self::Filter { .. } => Code::IteratorFilterInvalid,
            Self::IteratorsFull { .. } => Code::IteratorMax,
            Self::NoIterator { .. } => Code::IteratorNotExist,
            Self::IteratorIsOpen { .. } => Code::IteratorOpen,
            Self::KeyLength { .. } => Code::KeyLengthInvalid,
            Self::NoKey => Code::KeyNotExist,
            Self::Option { .. } => Code::OptionInvalid,
            Self::Config { .. } | Self::Param { .. } | Self::Trace { .. } => Code::ParamInvalid,
            Self::ValueLength { .. } | Self::ModelRange { .. } => Code::ValueLengthInvalid,
            Self::Buffer { .. } => Code::BufferSmall,
            Self::Offset { .. } => Code::ValueOffsetInvalid,
            Self::Misaligned { .. } => Code::ValueOffsetMisaligned,
            Self::NoOverwrite => Code::ValueUpdateNotAllowed,
        }
    }
}
