//! Parameters and options of an opening that were stated by name.

use std::fmt::Display;

use crate::any::Configuration;
use crate::model::text;
use crate::options;
use crate::registry;
use crate::schema::{refusal, unknown};
use crate::{AnyConfig, Error, OpenOptions, Result};

/// Parameters that are set by calls of a builder: the name of each, and the call.
pub(super) type Calls = &'static [(&'static str, &'static str)];

/// Parameters and options of a structure that were stated by name, as text, in their order. A structure is created with
/// its parameters and stores them; options apply to one opening. No name is both.
///
/// ```
/// use nandex::raw::Stated;
/// use nandex::{AnyConfig, OpenOptions, slicehash};
///
/// let stated = Stated::from_iter([("partitions", "8"), ("read_depth", "64")]);
/// let config = stated.on(&AnyConfig::from(slicehash::Config::tiny()))?;
/// assert_eq!(config.of::<slicehash::Config>()?.partitions, 8);
/// assert_eq!(stated.options("slicehash", OpenOptions::default())?.read_depth, Some(64));
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stated {
    values: Vec<(String, String)>,
    /// Options that a program passed as values.
    pub(super) options: OpenOptions,
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Stated {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(values: I) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { values, options: OpenOptions::default() }
    }
}

impl Stated {
    /// Adds one more.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.values.push((name.into(), value.into()));
    }

    /// The names and values, in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// Returns the configuration with the stated parameters in place of its own.
    ///
    /// # Errors
    /// As [`AnyConfig::with`]; a name that is neither a parameter nor an option, with a list of all.
    pub fn on(&self, config: &AnyConfig) -> Result<AnyConfig> {
        let (options, specs) = (options_of(config.kind()), config.specs());
        let kept = || self.values().filter(|(name, _)| !options.contains(name));
        let is_one = |path: &str| specs.iter().any(|it| path.split('.').next() == Some(it.name));
        if let Some((name, _)) = kept().find(|(name, _)| !is_one(name)) {
            let of_opening: Vec<_> = options::specs(options).map(|it| it.to_string()).collect();
            let parameters = unknown(name, specs, &config.values());
            let reason = format!("{parameters}; and, of an opening, {}", of_opening.join(", "));
            return Err(refusal(name, reason));
        }
        config.with(kept())
    }

    /// Returns the configuration of one structure with the stated parameters.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub fn on_one<C: Configuration + Clone>(&self, config: C) -> Result<C> {
        self.on(&config.into())?.of().cloned()
    }

    /// Returns the same configuration as [`on`](Self::on) if calls of a builder set these parameters, at any depth.
    ///
    /// # Errors
    /// As [`on`](Self::on); a stated value that differs from the call's.
    pub(super) fn on_with(&self, config: &AnyConfig, calls: Calls) -> Result<AnyConfig> {
        let made = self.on(config)?;
        let differs = |(had, has): &((String, String), (String, String))| had != has;
        for ((name, had), (_, has)) in
            config.values().into_iter().zip(made.values()).filter(differs)
        {
            let own = name.rsplit('.').next();
            if let Some((_, call)) = calls.iter().find(|(it, _)| Some(*it) == own) {
                let reason = format!(
                    "{name} is {had} by `{call}`, and was stated as {has}; state it with `{call}`"
                );
                return Err(Error::Config { field: "parameter", reason });
            }
        }
        Ok(made)
    }

    /// Returns the options of an opening of this kind of structure: those that were stated, and those of `base`. Names
    /// that are not options of it are checked by [`on`](Self::on) and [`check`](Self::check).
    ///
    /// # Errors
    /// [`Error::Config`]: a text that is not a value of its option.
    pub fn options(&self, kind: &str, base: OpenOptions) -> Result<OpenOptions> {
        let names = options_of(kind);
        let state = |options: OpenOptions, stated| options.with(names, stated);
        self.values().try_fold(self.options.clone().over(base), state)
    }

    /// The latest value that was stated under a name.
    pub(super) fn latest(&self, name: &str) -> Option<&str> {
        self.values().rev().find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    /// Fails if an existing structure has other parameters, and names both values.
    ///
    /// # Errors
    /// [`Error::Config`] for a value that differs; as [`on`](Self::on).
    pub fn check(&self, structure: &str, found: &AnyConfig) -> Result<()> {
        let (has, required) = (found.values(), self.on(found)?.values());
        let Some((has, required)) = has.iter().zip(&required).find(|(has, it)| has != it) else {
            return Ok(());
        };
        let ((name, has), (_, required)) = (has, required);
        Err(differs(structure, ("parameter", name), has, required))
    }
}

/// Fails if a call of a builder requires a value that an existing structure was created without, and names both.
pub(super) fn check_same<T: PartialEq + Display>(
    structure: &str,
    field: &'static str,
    has: &T,
    required: Option<&T>,
) -> Result<()> {
    match required.filter(|required| *required != has) {
        Some(required) => Err(differs(structure, (field, field), has, required)),
        None => Ok(()),
    }
}

/// Fails if an existing structure was created for fewer entries, keys or bytes than are required, and names both.
pub(super) fn check_enough(
    structure: &str,
    field: &'static str,
    has: u64,
    required: Option<u64>,
) -> Result<()> {
    match required.filter(|required| *required > has) {
        Some(required) => {
            Err(differs(structure, (field, field), &text::count(has), &text::count(required)))
        }
        None => Ok(()),
    }
}

fn differs(
    structure: &str,
    (field, name): (&'static str, &str),
    has: &impl Display,
    required: &impl Display,
) -> Error {
    let reason = format!(
        "{structure:?} exists with {name} = {has}, and was required with {required}; ask with what it has, or choose \
         another name"
    );
    Error::Config { field, reason }
}

/// The options of an opening that a kind of structure uses.
fn options_of(kind: &str) -> &'static [&'static str] {
    registry::find(kind).map_or(&[], |row| row.options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyTable, Filter, Table, cascade};

    #[test]
    fn options_are_told_from_parameters_and_only_to_kinds_that_have_a_use_for_them() {
        let stated = Stated::from_iter([("cache_bytes", "64KiB"), ("io_chunk_pages", "8")]);
        let usual = OpenOptions::default;
        let (row, table) = registry::tables().next().unwrap();
        assert_eq!(stated.options(row.kind, usual()).unwrap().cache_bytes, 64 << 10);
        let stated = Stated::from_iter([("cache_bytes", "64KiB"), ("read_depth", "8")]);
        let config = (table.tiny)();
        assert_eq!(stated.on(&config).unwrap(), config);
        let refused = stated.on(&cascade::Config::tiny().into()).unwrap_err().to_string();
        let listed = "\"cache_bytes\" is not a parameter; the parameters are keys (";
        assert!(refused.contains(listed), "{refused}");
        let of_opening = "; and, of an opening, flush_threads (0 to 64; 1, and 2 for";
        assert!(refused.contains(of_opening), "{refused}");
        assert!(refused.contains("read_depth (1 to 4,096; 32 unless stated)"), "{refused}");
        for (value, found) in [("0", "0"), ("4097", "4097"), ("deep", "deep")] {
            let stated = Stated::from_iter([("read_depth", value)]);
            let refused = stated.options(cascade::KIND, usual()).unwrap_err().to_string();
            assert!(refused.contains("read_depth: ") && refused.contains(found), "{refused}");
            assert!(refused.ends_with("; it must be 1 to 4,096"), "{refused}");
        }
    }

    #[test]
    fn every_name_of_a_row_is_that_of_an_option_and_of_no_parameter() {
        let table = |row: &registry::TableRow| (row.tiny)();
        let tables = registry::tables().map(|(row, it)| (row, table(it)));
        let filters = registry::filters().map(|(row, it)| (row, (it.tiny)()));
        let neighbors = registry::neighbors().map(|(row, it)| (row, (it.tiny)()));
        for (row, config) in tables.chain(filters).chain(neighbors) {
            assert_eq!(options::specs(row.options).count(), row.options.len(), "{}", row.kind);
            let is_both = |name: &&str| config.specs().iter().any(|spec| spec.name == *name);
            assert_eq!(row.options.iter().find(|name| is_both(name)), None, "{}", row.kind);
        }
    }

    #[test]
    fn what_an_opening_is_told_reaches_the_structures_of_a_database_and_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let db = crate::open(folder.path().join("all.nandex")).unwrap();
        let cache = |table: &AnyTable| table.stats().cache_bytes_max;
        let table = || db.table("t").entries(1000);
        let stated = table().parameter("cache_bytes", "100KiB").create_or_open().unwrap();
        let few = cache(&stated);
        assert!((1..=100 << 10).contains(&few), "{few}");
        drop(stated);
        let options = OpenOptions { cache_bytes: 100 << 10, ..OpenOptions::default() };
        assert_eq!(cache(&table().options(options.clone()).create_or_open().unwrap()), few);
        assert!(cache(&table().create_or_open().unwrap()) > few);
        let map = db.map("m").entries(1000).parameter("cache_bytes", "100KiB").create_or_open();
        assert_eq!(map.unwrap().stats().cache_bytes_max, 100 << 10);

        // A filter's RAM includes chunks for each thread.
        let ram = |pages: &str| {
            let filter = db.filter("f").keys(1e5).parameter("io_chunk_pages", pages);
            filter.create_or_open().unwrap().stats().ram_bytes
        };
        assert!(ram("200") > ram("4"));
        let ram = |pages: &str| {
            let counts = db.counting("c").keys(1e5).parameter("io_chunk_pages", pages);
            counts.create_or_open().unwrap().stats().ram_bytes
        };
        assert!(ram("200") > ram("4"));
        let refused = db.counting("c").parameter("read_depth", "0").create_or_open().unwrap_err();
        assert!(refused.to_string().contains("it must be 1 to 4,096"), "{refused}");
    }
}
