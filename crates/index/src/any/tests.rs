//! The reference page of all parameters.

use std::fmt::Write as _;
use std::path::Path;

use super::AnyConfig;
use crate::registry::{self, Family, Row};
use crate::schema::ParameterSpec;
use crate::{
    FilterRequirements, NeighborsRequirements, OpenOptions, Policy, Prediction, Requirements,
    Result,
};

/// What the defaults of the page are for.
const ENTRIES: u64 = 1_000_000;
const RATE: f64 = 0.01;
const RAM_BYTES: u64 = 32 << 20;
const TABLES: u32 = 10;

fn predictions() -> impl Iterator<Item = Prediction> {
    registry::tables().map(|(row, table)| {
        let policy = if table.grows { Policy::Grow } else { Policy::Reject };
        let asked = Requirements { policy, ..Requirements::new(ENTRIES, 8, 8) };
        asked.advise_one(row.kind).unwrap_or_else(|why| panic!("{}: {why}", row.kind))
    })
}

/// The configuration that the defaults are from; `None` for a kind that no user creates.
fn default_of(row: &Row) -> Option<Result<AnyConfig>> {
    match &row.family {
        Family::Table(_) => {
            let of_row = predictions().find(|it| it.config.kind() == row.kind);
            of_row.map(|it| Ok(it.config))
        }
        Family::Filter(filter) => {
            Some((filter.advise)(&FilterRequirements::new(ENTRIES, RATE, RAM_BYTES)))
        }
        Family::Neighbors(it) => Some((it.advise)(&NeighborsRequirements::new(ENTRIES, TABLES))),
        Family::Part | Family::Generation => None,
    }
}

/// The words of a doc comment, without its links.
fn prose(meaning: &str) -> String {
    let words: Vec<_> = meaning.split_whitespace().collect();
    let mut text = words.join(" ");
    while let Some((start, end)) = text.find("[`").zip(text.find("`]")) {
        let rest = &text[end + 2..];
        let target = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        let after = target.map_or(rest, |(_, after)| after);
        text = format!("{}`{}`{after}", &text[..start], &text[start + 2..end]);
    }
    text.replace('|', "\\|")
}

fn row_of(spec: &ParameterSpec, values: &[(String, String)]) -> String {
    let part = |path: &str| path.strip_prefix(spec.name)?.strip_prefix('.').map(str::to_owned);
    let shown = |(path, value): &(String, String)| match part(path) {
        Some(part) => Some(format!("{part} = {value}")),
        None => (path == spec.name).then(|| value.clone()),
    };
    let default: Vec<_> = values.iter().filter_map(shown).collect();
    let mut bytes = (spec.bytes)().to_string();
    if let Some((earlier, rest)) = spec.then {
        write!(bytes, ", then {} of `{earlier}`", rest()).unwrap();
    }
    format!(
        "| `{}` | {} | {} | {} | {bytes} |\n",
        spec.name,
        prose(spec.meaning),
        spec.values(),
        default.join(", ")
    )
}

fn page() -> String {
    let mut page = String::from(
        "# Parameters\n\n\
         Every parameter of every structure, as the code declares it. This page is generated, and a test \
         compares it; to write it again:\n\n\
         ```text\n\
         NANDEX_DOCS=write cargo test --locked -p nandex --lib parameters_page\n\
         ```\n\n\
         A parameter is stated by its name, in place of what the requirements lead to: with `--set \
         NAME=VALUE` of `nandex create`, `filter build`, `filter unique` and `count build`, with \
         `parameter(name, value)` of the builders of `nandex::open`, with `parameters={\"name\": \
         \"value\"}` of Python's `db.table`, \
         `db.map`, `db.filter` and `db.counter`, and with `AnyConfig::with`. The parts of a parameter that \
         has parts are stated one by one, such as `filter.bits=14`. A name that a structure does not have is \
         refused with all that there are. `nandex info --json` lists the values of a structure, in `values`, \
         as `AnyConfig::values` does.\n\n\
         Numbers take no unit in the list, and may be stated with one, such as `64k`. Parameters are \
         little-endian on flash, in this order, behind one byte for the version; *Bytes* says how many each \
         takes. *Default* is what the requirements lead to for 1,000,000 entries of 8 + 8 bytes in a table, \
         as many keys at a rate of 0.01 in 32 MiB in a filter, and as many documents with 10 hash tables in \
         an index of neighbours; with other requirements it is another.\n",
    );
    for row in registry::rows() {
        let Some(config) = default_of(row) else { continue };
        let config = config.unwrap_or_else(|why| panic!("{}: {why}", row.kind));
        let (values, specs) = (config.values(), config.specs());
        writeln!(page, "\n## {} (`{}`)\n\n{}\n", row.name, row.kind, row.good_for).unwrap();
        page.push_str("| Name | Meaning | Values | Default | Bytes |\n|---|---|---|---|---|\n");
        specs.iter().for_each(|spec| page.push_str(&row_of(spec, &values)));
        writeln!(page, "\nOf an opening: `{}`.", row.options.join("`, `")).unwrap();
    }
    page.push_str(
        "\n## Options of an opening\n\n\
         They are stated by name, as parameters are, and in the same places; with `--set NAME=VALUE` of the verbs \
         that open a table, a filter or counts, too, and with `options(OpenOptions)` of the builders. No structure \
         keeps them: the next opening may have others.\n\n\
         | Name | Meaning | Values | Default |\n|---|---|---|---|\n",
    );
    for spec in OpenOptions::SPECS {
        let (name, meaning) = (spec.name, prose(spec.meaning));
        writeln!(page, "| `{name}` | {meaning} | {} | {} |", spec.values(), spec.default).unwrap();
    }
    page
}

#[test]
fn the_parameters_page_is_what_the_code_declares() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/parameters.md");
    let page = page();
    if std::env::var("NANDEX_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/parameters.md is not what the code declares; it names what writes it again"
    );
}
