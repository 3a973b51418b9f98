//! The decoders of records and value logs, for fuzzing.

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::values::format::{PAYLOAD_BYTES, ValuesState, decode_page, record_bytes};
use nandex_store::values::{ValueRef, ValuesConfig};

use super::format::Record;
use crate::testing::Decoder;

const PLACE: PageId = PageId(7);

pub(super) const DECODERS: &[Decoder] = &[
    Decoder { name: "configuration and state", run: decode_maps },
    Decoder { name: "reference, page and record", run: decode_records },
];

fn decode_maps(bytes: &[u8]) {
    if let Ok(config) = ValuesConfig::decode(&mut Reader::new(bytes, "configuration", PLACE)) {
        assert_eq!(config.encode(), bytes[..ValuesConfig::BYTES]);
    }
    let decode = |bytes: &[u8]| {
        ValuesState::decode(&mut Reader::new(bytes, "state", PLACE), &ValuesConfig::tiny())
    };
    if let Ok(state) = decode(bytes) {
        let mut again = Vec::new();
        state.encode(&mut again);
        assert!(decode(&again).is_ok_and(|read| read == state));
        // An encoding of an earlier version ends before the counts.
        assert!(bytes.starts_with(&again) || again.starts_with(bytes));
    }
}

fn decode_records(bytes: &[u8]) {
    if let Some(reference) = ValueRef::decode(bytes) {
        assert_eq!(reference.encode(), bytes);
        assert!(reference.end() > u64::from(reference.offset));
    }
    if let Ok((_, payload)) = decode_page(bytes, PLACE) {
        assert_eq!(payload.len(), PAYLOAD_BYTES);
    }
    assert!(record_bytes(bytes).is_none() || bytes.len() >= 8);
    if let Ok(record) = Record::decode(bytes, PLACE) {
        let headers = record.headers();
        assert_eq!(record.parts(&headers).concat(), bytes);
        assert_eq!(Record::bytes(&record.pairs), bytes.len() as u64);
    }
}
