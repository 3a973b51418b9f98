//! The result codes of the SNIA Key Value Storage API 1.1, with the numbers of its public header.

use std::fmt;

/// The result of a call, as numbered by the specification.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
#[non_exhaustive]
pub enum ResultCode {
    /// The call succeeded.
    Success = 0x000,
    /// A buffer of the caller is too small.
    BufferSmall = 0x001,
    /// The device has not enough space.
    DeviceCapacity = 0x002,
    /// There is no such device.
    DeviceNotExist = 0x003,
    /// The key space has not enough space.
    SpaceCapacity = 0x004,
    /// A key space of this name exists.
    SpaceExist = 0x005,
    /// A list of key spaces would begin past its end.
    SpaceIndex = 0x006,
    /// An invalid name of a key space.
    SpaceName = 0x007,
    /// There is no such key space.
    SpaceNotExist = 0x008,
    /// The key space is not open.
    SpaceNotOpen = 0x009,
    /// The key space is open already.
    SpaceOpen = 0x00a,
    /// A filter whose pattern has bits outside of its mask.
    IteratorFilterInvalid = 0x00b,
    /// The most iterators that the device can have are open.
    IteratorMax = 0x00c,
    /// There is no such iterator.
    IteratorNotExist = 0x00d,
    /// An iterator with this filter is open already.
    IteratorOpen = 0x00e,
    /// A key that is too short or too long.
    KeyLengthInvalid = 0x00f,
    /// The key is absent.
    KeyNotExist = 0x010,
    /// An option that the device does not support.
    OptionInvalid = 0x011,
    /// A missing or invalid parameter.
    ParamInvalid = 0x012,
    /// The device failed.
    SysIo = 0x013,
    /// A value that is too long.
    ValueLengthInvalid = 0x014,
    /// An offset past the end of a value.
    ValueOffsetInvalid = 0x015,
    /// An offset that is not a multiple of the unit of offsets.
    ValueOffsetMisaligned = 0x016,
    /// The key exists, and may not be overwritten.
    ValueUpdateNotAllowed = 0x017,
    /// The device was closed.
    DeviceNotOpened = 0x018,
}

/// Every code with its name in the specification.
const NAMES: [(ResultCode, &str); 25] = [
    (ResultCode::Success, "KVS_SUCCESS"),
    (ResultCode::BufferSmall, "KVS_ERR_BUFFER_SMALL"),
    (ResultCode::DeviceCapacity, "KVS_ERR_DEV_CAPACITY"),
    (ResultCode::DeviceNotExist, "KVS_ERR_DEV_NOT_EXIST"),
    (ResultCode::SpaceCapacity, "KVS_ERR_KS_CAPACITY"),
    (ResultCode::SpaceExist, "KVS_ERR_KS_EXIST"),
    (ResultCode::SpaceIndex, "KVS_ERR_KS_INDEX"),
    (ResultCode::SpaceName, "KVS_ERR_KS_NAME"),
    (ResultCode::SpaceNotExist, "KVS_ERR_KS_NOT_EXIST"),
    (ResultCode::SpaceNotOpen, "KVS_ERR_KS_NOT_OPEN"),
    (ResultCode::SpaceOpen, "KVS_ERR_KS_OPEN"),
    (ResultCode::IteratorFilterInvalid, "KVS_ERR_ITERATOR_FILTER_INVALID"),
    (ResultCode::IteratorMax, "KVS_ERR_ITERATOR_MAX"),
    (ResultCode::IteratorNotExist, "KVS_ERR_ITERATOR_NOT_EXIST"),
    (ResultCode::IteratorOpen, "KVS_ERR_ITERATOR_OPEN"),
    (ResultCode::KeyLengthInvalid, "KVS_ERR_KEY_LENGTH_INVALID"),
    (ResultCode::KeyNotExist, "KVS_ERR_KEY_NOT_EXIST"),
    (ResultCode::OptionInvalid, "KVS_ERR_OPTION_INVALID"),
    (ResultCode::ParamInvalid, "KVS_ERR_PARAM_INVALID"),
    (ResultCode::SysIo, "KVS_ERR_SYS_IO"),
    (ResultCode::ValueLengthInvalid, "KVS_ERR_VALUE_LENGTH_INVALID"),
    (ResultCode::ValueOffsetInvalid, "KVS_ERR_VALUE_OFFSET_INVALID"),
    (ResultCode::ValueOffsetMisaligned, "KVS_ERR_VALUE_OFFSET_MISALIGNED"),
    (ResultCode::ValueUpdateNotAllowed, "KVS_ERR_VALUE_UPDATE_NOT_ALLOWED"),
    (ResultCode::DeviceNotOpened, "KVS_ERR_DEV_NOT_OPENED"),
];

impl ResultCode {
    /// Returns all codes, in the order of their numbers.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        NAMES.iter().map(|(code, _)| *code)
    }

    /// Returns the number of the code.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// Returns the specification's name of the code.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.number())].1
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_stands_at_its_number() {
        for (index, code) in ResultCode::all().enumerate() {
            assert_eq!(usize::from(code.number()), index);
            assert!(code.name().starts_with("KVS_"), "{code}");
        }
        assert_eq!(ResultCode::all().len(), 25);
        assert_eq!(ResultCode::DeviceNotOpened.number(), 0x18);
    }
}
