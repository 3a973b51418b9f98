//! The generated reference page of all parameters.

use std::fmt::Write as _;
use std::path::Path;

use crate::OpenOptions;
use crate::db::listing::{prose, usual};
use crate::registry;
use crate::schema::ParameterSpec;

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
        prose(spec.meaning).replace('|', "\\|"),
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
         NAME=VALUE` of `nandex create`, `filter build`, `filter unique`, `count build` and the verbs of \
         `dedup`, `tfidf`, `neardup`, `wan` and `kvssd` that make a file, with \
         `parameter(name, value)` of the builders of `nandex::open`, with `parameters={\"name\": \
         \"value\"}` of Python's `db.table`, \
         `db.map`, `db.filter` and `db.counter`, and with `AnyConfig::with`. The parts of a parameter that \
         has parts are stated one by one, such as `filter.bits=14`. A name that a structure does not have is \
         refused with all that there are. `nandex info --json` lists the values of a structure, in `values`, \
         as `AnyConfig::values` does. `nandex parameters KIND`, `nandex::db::parameters(kind)` and \
         Python's `nandex.parameters(kind)` list what is below.\n\n\
         Numbers take no unit in the list, and may be stated with one, such as `64k`. Parameters are \
         little-endian on flash, in this order, behind one byte for the version; *Bytes* says how many each \
         takes. *Default* is what the requirements lead to for 1,000,000 entries of 8 + 8 bytes in a table, \
         as many keys at a rate of 0.01 in 32 MiB in a filter, and as many documents with 10 hash tables in \
         an index of neighbours; with other requirements it is another.\n",
    );
    for row in registry::rows() {
        let Some(config) = usual(row) else { continue };
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
        let (name, meaning) = (spec.name, prose(spec.meaning).replace('|', "\\|"));
        writeln!(page, "| `{name}` | {meaning} | {} | {} |", spec.values(), spec.default).unwrap();
    }
    page
}

#[test]
fn the_parameters_page_is_what_the_code_declares() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/parameters.md");
    let page = page();
    if std::env::var("NANDEX_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/reference/parameters.md is not what the code declares; it names what writes it again"
    );
}
