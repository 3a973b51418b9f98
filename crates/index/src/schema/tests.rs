//! A schema for these tests: its bytes, its ranges, its list.

use nandex_device::PageId;

use super::*;

const KIND: &str = "example";

parameters! {
    /// An example.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config: KIND, version 3, tiny [const];

    /// Whether it is.
    flag: bool = true;

    /// Partitions.
    /// Each has two halves.
    partitions: u32 = 4, in Range::PowerOfTwo(64);

    /// Bytes at most.
    bytes_max: Option<u64> = None, in Range::Within(10, 20);

    /// Bytes in a key.
    key_bytes: usize = 8, in Range::Within(8, 32);
}

impl Config {
    fn validate(&self) -> Result<()> {
        self.check_ranges()
    }
}

fn read_back(bytes: &[u8]) -> Result<Config> {
    Config::decode(&mut Reader::new(bytes, "configuration", PageId(0)))
}

#[test]
fn a_configuration_is_its_version_and_its_parameters_in_their_order() {
    let bytes = Config::tiny().encode();
    assert_eq!(bytes, [3, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0]);
    for bytes_max in [None, Some(12)] {
        let config = Config { bytes_max, flag: false, ..Config::tiny() };
        assert_eq!(read_back(&config.encode()).unwrap(), config);
    }
    assert!((0..bytes.len()).all(|length| read_back(&bytes[..length]).is_err()));
    for (at, value) in [(0, 2), (1, 2), (2, 5), (6, 9), (14, 33)] {
        let mut bad = bytes.clone();
        bad[at] = value;
        assert!(read_back(&bad).is_err(), "{at}");
    }
}

#[test]
fn a_parameter_out_of_its_range_is_refused_by_its_name() {
    let refusal = |config: Config| config.validate().unwrap_err().to_string();
    assert!(refusal(Config { partitions: 0, ..Config::tiny() }).starts_with("partitions: 0 is"));
    assert!(refusal(Config { partitions: 128, ..Config::tiny() }).contains("up to 64"));
    assert!(refusal(Config { bytes_max: Some(9), ..Config::tiny() }).contains("10..=20"));
    assert!(refusal(Config { key_bytes: 7, ..Config::tiny() }).starts_with("key_bytes: 7"));
}

#[test]
fn parameters_are_listed_with_their_meaning_and_range() {
    let names: Vec<_> = Config::PARAMETERS.iter().map(|it| it.name).collect();
    assert_eq!(names, ["flag", "partitions", "bytes_max", "key_bytes"]);
    assert_eq!(Config::PARAMETERS[1].meaning, " Partitions.\n Each has two halves.\n");
    assert_eq!(Config::PARAMETERS[1].range, Range::PowerOfTwo(64));
}

#[test]
fn what_a_parameter_can_be_and_its_bytes_are_listed_for_people() {
    let shown: Vec<_> = Config::PARAMETERS.iter().map(ParameterSpec::values).collect();
    assert_eq!(shown, ["true or false", "a power of two up to 64", "10 to 20, or none", "8 to 32"]);
    assert_eq!(Config::PARAMETERS.iter().map(|it| (it.bytes)()).collect::<Vec<_>>(), [1, 4, 8, 4]);
    assert!(Config::PARAMETERS.iter().all(|it| it.then.is_none()));
}

#[test]
fn a_name_that_is_no_parameter_is_refused_with_all_that_there_are() {
    let refused = Config::tiny().set("colour", "red").unwrap_err();
    let (start, end) = (
        "\"colour\" is not a parameter; the parameters are flag (true or false; true unless stated), ",
        "key_bytes (8 to 32; 8 unless stated)",
    );
    assert!(refused.starts_with(start) && refused.ends_with(end), "{refused}");
    assert!(refused.contains("bytes_max (10 to 20, or none; none unless stated)"), "{refused}");
}
