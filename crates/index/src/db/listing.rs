//! The list of all parameters and options of a kind of structure, by name.

use crate::options;
use crate::registry::{self, Family, Row};
use crate::{AnyConfig, Error, FilterRequirements, NeighborsRequirements, Policy};
use crate::{Requirements, Result};

/// The requirements that defaults are given for: entries or keys, the rate and RAM of a filter, the tables of an index
/// of neighbours.
const ENTRIES: u64 = 1_000_000;
const RATE: f64 = 0.01;
const RAM_BYTES: u64 = 32 << 20;
const TABLES: u32 = 10;

/// A parameter that a structure is created with, or an option of its opening.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statable {
    /// Its name, as `parameter` of the builders takes it. The parts of a parameter with parts are listed one by one.
    pub name: String,
    /// Its meaning.
    pub meaning: String,
    /// The values that it can have, as text.
    pub values: String,
    /// Its default. A parameter's default follows from the requirements: this is the one for a million entries or keys.
    pub default: String,
    /// Whether the structure stores it. An option of an opening is stated at each opening.
    pub is_kept: bool,
}

/// Lists the parameters of a structure of this kind, such as `bufferhash`, and the options of its opening.
///
/// ```
/// let all = nandex::db::parameters("cascade")?;
/// let fan_out = all.iter().find(|it| it.name == "fan_out").expect("it has one");
/// assert!(fan_out.is_kept && fan_out.meaning.starts_with("The factor"));
/// assert!(all.iter().any(|it| it.name == "read_depth" && !it.is_kept));
/// # Ok::<(), nandex::Error>(())
/// ```
///
/// # Errors
/// No such kind, or a kind that is part of another structure, with a list of those that can be created.
pub fn parameters(kind: &str) -> Result<Vec<Statable>> {
    let Some((row, config)) = registry::find(kind).and_then(|row| Some((row, usual(row)?))) else {
        let kinds: Vec<_> = registry::rows().filter(|it| usual(it).is_some()).collect();
        let kinds: Vec<_> = kinds.iter().map(|row| row.kind).collect();
        let reason = format!("{kind:?} is none that is made; there are {}", kinds.join(", "));
        return Err(Error::Config { field: "kind", reason });
    };
    let config = config?;
    let spec =
        |name: &str| config.specs().iter().find(|it| name.split('.').next() == Some(it.name));
    let of_structure = config.values().into_iter().filter_map(|(name, default)| {
        let spec = spec(&name)?;
        let (meaning, values) = (prose(spec.meaning), spec.values());
        Some(Statable { name, meaning, values, default, is_kept: true })
    });
    let of_opening = options::specs(row.options).map(|spec| Statable {
        name: spec.name.to_owned(),
        meaning: prose(spec.meaning),
        values: spec.values(),
        default: spec.default.to_owned(),
        is_kept: false,
    });
    Ok(of_structure.chain(of_opening).collect())
}

/// The configuration that the defaults are from; `None` for a kind that users do not create.
pub(crate) fn usual(row: &Row) -> Option<Result<AnyConfig>> {
    match &row.family {
        Family::Table(table) => {
            let policy = if table.grows { Policy::Grow } else { Policy::Reject };
            let asked = Requirements { policy, ..Requirements::new(ENTRIES, 8, 8) };
            Some(asked.advise_one(row.kind).map(|it| it.config))
        }
        Family::Filter(filter) => {
            Some((filter.advise)(&FilterRequirements::new(ENTRIES, RATE, RAM_BYTES)))
        }
        Family::Neighbors(it) => Some((it.advise)(&NeighborsRequirements::new(ENTRIES, TABLES))),
        Family::Part | Family::Generation => None,
    }
}

/// The words of a doc comment, without its links.
pub(crate) fn prose(meaning: &str) -> String {
    let words: Vec<_> = meaning.split_whitespace().collect();
    let mut text = words.join(" ");
    while let Some((start, end)) = text.find("[`").zip(text.find("`]")) {
        let rest = &text[end + 2..];
        let target = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        let after = target.map_or(rest, |(_, after)| after);
        text = format!("{}`{}`{after}", &text[..start], &text[start + 2..end]);
    }
    text
}
