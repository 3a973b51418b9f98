//! The specimen in the [`registry`](nandex::raw::registry).

use nandex::Value;
use nandex::raw::model::{OperationCosts, ParameterValue, log_bytes};
use nandex::raw::schema::ParameterSpec;
use nandex::raw::{AnyEntries, AnyEntriesPastDamage, Configuration, Description, OpenTable};
use nandex::raw::{Family, Notes, Row, TableRow, count, line, refusal, too_little_ram};
use nandex::testing::{Decoder, Retention, TableRequest, TableTests, TestTable};
use nandex::{AnyConfig, AnyTable, Error, OpenOptions, Result};
use nandex::{Policy, Prediction, Requirements};
use nandex_device::PageId;
use nandex_store::Volume;
use nandex_store::bytes::Reader;

use super::check::check;
use super::{Config, ENTRIES_MAX, KIND, Specimen};

/// The specimen's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "Specimen",
    good_for: "Tests of what walks over the registry.",
    options: &[],
    family: Family::Table(TableRow {
        grows: false,
        is_baseline: false,
        merges_into: None,
        create,
        open: |volume, name, _| Specimen::open(volume, name).map(Into::into),
        advise,
        tiny: || Config::tiny().into(),
        testing: TableTests { variants: 1, config: test_config },
    }),
    check: |checker, contents, entry, _| {
        check(checker, contents, entry);
        Ok(())
    },
    decoders: &[Decoder { name: "configuration, state and update", run: decode }],
};

fn create(volume: &Volume, name: &str, config: &AnyConfig, _: &OpenOptions) -> Result<AnyTable> {
    Specimen::create(volume, name, *config.of()?).map(Into::into)
}

fn advise(requirements: &Requirements) -> Result<Prediction> {
    requirements.check()?;
    requirements.check_no_extras("specimen")?;
    let has_policy = matches!(requirements.policy, Policy::Fifo | Policy::Reject);
    requirements.check_policy("specimen", "fifo and reject", has_policy)?;
    let Some(entries) = u32::try_from(requirements.entries).ok().filter(|it| *it <= ENTRIES_MAX)
    else {
        let reason = format!("{}; a specimen holds {ENTRIES_MAX} or fewer", requirements.entries);
        return Err(Error::Config { field: "entries", reason });
    };
    let config = Config {
        key_bytes: requirements.key_bytes as usize,
        value_bytes: requirements.value_bytes as usize,
        entries_max: entries,
    };
    let map_bytes = requirements.entries * requirements.entry_bytes();
    let budget = requirements.ram_bytes.unwrap_or(u64::MAX);
    if budget < map_bytes {
        return Err(too_little_ram(budget, map_bytes));
    }
    let costs = Configuration::operation_costs(&config)?;
    let insert_worst_ns = requirements.device.costs.write.ns(costs.insert_write_bytes);
    requirements.check_insert_worst(insert_worst_ns)?;
    requirements.check_load(&costs)?;
    let notes = Notes {
        written: vec![line("bytes written", count(map_bytes), "with each checkpoint")],
        ..Notes::default()
    };
    let mut prediction = Prediction::new(config.into(), requirements, costs, notes);
    prediction.buffer_bytes = map_bytes;
    prediction.insert_amortised_ns = insert_worst_ns;
    prediction.insert_worst_ns = insert_worst_ns;
    prediction.parameters = vec![("entries_max", ParameterValue::Count(entries.into()))];
    Ok(prediction)
}

impl Configuration for Config {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn encode(&self) -> Vec<u8> {
        Self::encode(self)
    }

    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn specs(&self) -> &'static [ParameterSpec] {
        &[]
    }

    fn values(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn with(&self, name: &str, _value: &str) -> Result<AnyConfig> {
        Err(refusal(name, "a specimen has no parameters that can be stated".to_owned()))
    }

    fn log_bytes_best(&self) -> u64 {
        1 << 20
    }

    /// Returns the worst case: every update is followed by a checkpoint, which writes the whole map.
    fn operation_costs(&self) -> Result<OperationCosts> {
        let map_bytes = self.entries_max as usize * self.entry_bytes();
        Ok(OperationCosts {
            reads_per_hit: 0.0,
            reads_per_miss: 0.0,
            insert_read_bytes: 0.0,
            insert_write_bytes: map_bytes as f64 + log_bytes(self.entry_bytes() as u64),
            updates: None,
        })
    }

    fn describe(&self) -> Description {
        Description {
            when_full: "reject".into(),
            entries_capacity: self.entries_max.into(),
            parameters: vec![("entries_max", ParameterValue::Count(self.entries_max.into()))],
            shape: format!("a map of {} entries", self.entries_max),
        }
    }
}

impl OpenTable for Specimen {
    fn config(&self) -> AnyConfig {
        self.inner.config.into()
    }

    fn iter(&self) -> AnyEntries<'_> {
        let entries = self.inner.map.entries().into_iter();
        Box::new(entries.map(|(key, value)| Ok((key, Value::new(&value)))))
    }

    /// Iterates over all entries: a specimen has no pages of its own that could be damaged.
    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        let entries = self.inner.map.entries().into_iter();
        Box::new(entries.map(|(key, value)| Ok((key, Value::new(&value)))))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}

fn test_config(request: &TableRequest) -> TestTable {
    let &TableRequest { key_bytes, value_bytes, keys, .. } = request;
    let entries_max =
        keys.map_or(500, |keys| u32::try_from(2 * keys).expect("tests have few keys"));
    let config = Config { key_bytes, value_bytes, entries_max };
    TestTable {
        label: "Specimen".into(),
        config: config.into(),
        options: OpenOptions::default(),
        buffer_entries: entries_max.into(),
        retention: if keys.is_some() { Retention::All } else { Retention::Refuses },
    }
}

fn decode(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "specimen", PageId(0));
    let Ok(config) = Config::decode(&mut reader) else { return };
    let encoded = config.encode();
    assert_eq!(encoded, bytes[..encoded.len()]);
    let rest = &bytes[encoded.len()..];
    let mut entries = Vec::new();
    let state =
        config.decode_state(&mut Reader::new(rest, "state", PageId(0)), &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
            Ok(())
        });
    if state.is_ok() && !rest.is_empty() {
        assert_eq!(config.encode_state(&entries), rest);
    }
    if let Ok(update) = config.decode_update(nandex_store::Lsn(0), rest) {
        assert_eq!(update.key.len(), config.key_bytes);
    }
}
