//! The files of presets: right ones are read and written back, errors are named.

use std::collections::BTreeSet;

use nandex_sim::preset::PresetError;
use nandex_sim::spec::{Level, Mapping};
use nandex_sim::{Fill, Machine, Preset};

#[test]
fn every_preset_parses_and_builds_and_says_what_it_is() {
    for name in Preset::names() {
        let preset = Preset::named(name).unwrap();
        assert_eq!(preset.name(), name);
        assert!(preset.about().len() > 20, "{name}");
        let geometry = preset.geometry();
        assert!(geometry.channels.is_some(), "{name}");
        geometry.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        let model = preset.build(Fill::Empty).unwrap();
        assert!(model.page_count() >= 65_536, "{name}");
        match preset.machine() {
            Machine::Ssd(spec) => assert_eq!(preset.ssd(Fill::Sequential).unwrap().spec(), spec),
            _ => {
                assert!(matches!(preset.ssd(Fill::Empty), Err(PresetError::NotSsd { .. })));
            }
        }
    }
}

#[test]
fn every_preset_is_the_same_after_it_was_written_and_read() {
    for name in Preset::names() {
        let preset = Preset::named(name).unwrap();
        let text = preset.to_toml().unwrap();
        assert_eq!(Preset::from_toml(&text).unwrap(), preset, "{name}");
    }
}

#[test]
fn every_file_of_the_folder_is_built_in_under_its_name_and_no_other() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("presets");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<_> = files
        .map(|file| file.to_str().unwrap().strip_suffix(".toml").unwrap().to_owned())
        .collect();
    let names: BTreeSet<_> = Preset::names().map(str::to_owned).collect();
    assert_eq!(files, names);
    for name in names {
        let from_file = Preset::from_file(folder.join(format!("{name}.toml"))).unwrap();
        assert_eq!(from_file, Preset::named(&name).unwrap());
    }
}

#[test]
fn a_variant_of_the_paper_comes_with_one_of_the_device() {
    let names: Vec<_> = Preset::names().collect();
    for paper in names.iter().filter_map(|name| name.strip_suffix("-paper")) {
        assert!(names.contains(&paper), "{paper}");
    }
}

#[test]
fn the_m4_has_the_channels_chunks_and_order_that_were_found() {
    for name in ["crucial-m4", "crucial-m4-paper"] {
        let preset = Preset::named(name).unwrap();
        let geometry = preset.geometry();
        assert_eq!((geometry.channels, geometry.chunk_bytes), (Some(32), Some(8192)));
        assert_eq!(
            (geometry.mapping, geometry.buses),
            (Some(nandex_device::Mapping::WriteOrder), Some(8))
        );
        assert_eq!(geometry.depth, 32);
        assert_eq!(geometry.serial_buses, name == "crucial-m4-paper");
        let Machine::Ssd(spec) = preset.machine() else { panic!("{name} is an SSD") };
        assert_eq!((spec.ftl.mapping, spec.ftl.domain), (Mapping::WriteOrder, Level::Plane));
    }
}

/// Returns the text of a preset with one piece replaced.
fn changed(name: &str, from: &str, to: &str) -> String {
    let text = Preset::text(name).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// Returns the line of a piece, counted from 1.
fn line_of(name: &str, piece: &str) -> usize {
    let text = Preset::text(name).unwrap();
    1 + text.lines().position(|line| line.starts_with(piece)).unwrap()
}

#[test]
fn a_wrong_field_is_named_with_its_line_what_was_expected_and_what_was_found() {
    // The replaced piece, its replacement, the field, the line's beginning, expected, found.
    let wrong = [
        ("depth = 32 ", "depth = \"deep\" ", "host.depth", "depth", "u32", "string \"deep\""),
        ("depth = 32 ", "depth = 3.5 ", "host.depth", "depth", "u32", "floating point `3.5`"),
        ("depth = 32 ", "depth = -1 ", "host.depth", "depth", "u32", "integer `-1`"),
        ("depth = 32 ", "depht = 32 ", "host.depht", "depth", "`depth`", "unknown field `depht`"),
        ("depth = 32 ", "#", "host.depth", "[host]", "a value", "nothing"),
        ("depth = 32 ", "depth = 0 ", "host.depth", "depth", "1 to 65536", "0"),
        ("duplex = false", "duplex = 0", "host.duplex", "duplex", "a boolean", "integer `0`"),
        ("unit = \"plane\"", "unit = \"bus\"", "parallel.unit", "unit", "`channel`", "`bus`"),
        ("[ftl]", "[flt]", "flt", "[ftl]", "`ftl`", "unknown field `flt`"),
        (
            "page_bytes = 8192",
            "page_bytes = 5000",
            "flash.page_bytes",
            "page_bytes",
            "4096",
            "5000",
        ),
        ("planes = 2", "planes = 65", "flash.planes", "planes", "1 to 64", "65"),
        ("spare_permille = 69", "spare_permille = 0", "ftl.spare_permille", "spare_p", "12", "0"),
        ("kind = \"ssd\"", "kind = \"tape\"", "kind", "kind", "\"ssd\"", "\"tape\""),
        ("kind = \"ssd\"", "kind = 7", "kind", "kind", "\"disk\"", "7"),
        ("erases_max = 3000", "erases_max = 0", "erases_max", "erases_max", "1 to", "0"),
    ];
    for (from, to, field, start, expected, found) in wrong {
        let error = Preset::from_toml(&changed("crucial-m4", from, to)).unwrap_err();
        let text = error.to_string();
        let PresetError::Field { line, field: named, expected: wanted, found: there, .. } = error
        else {
            panic!("{to}: {text}")
        };
        assert_eq!(named, field, "{to}: {text}");
        assert_eq!(line, line_of("crucial-m4", start), "{to}: {text}");
        assert!(wanted.contains(expected), "{to}: {text}");
        assert!(there.contains(found), "{to}: {text}");
    }
}

#[test]
fn a_wrong_disk_is_named_in_the_same_way() {
    let text = changed("disk-7200", "surfaces = 4", "surfaces = 0");
    let error = Preset::from_toml(&text).unwrap_err().to_string();
    let line = line_of("disk-7200", "surfaces");
    assert_eq!(
        error,
        format!(
            "the text, line {line}: surfaces: expected 1 to 64, found 0; \
             change this field or those that it must fit"
        )
    );
    let text = changed("disk-7200", "surfaces = 4", "heads = 4");
    let error = Preset::from_toml(&text).unwrap_err().to_string();
    assert!(error.contains("heads") && error.contains("surfaces"), "{error}");
}

#[test]
fn a_missing_kind_or_table_is_named() {
    let error = Preset::from_toml("").unwrap_err().to_string();
    let kinds = "expected \"ssd\" or \"disk\", found nothing";
    assert_eq!(
        error,
        format!("the text, line 1: kind: {kinds}; say first what the file describes")
    );
    let text = Preset::text("slc").unwrap().split("[ftl]").next().unwrap();
    let error = Preset::from_toml(text).unwrap_err();
    assert!(matches!(&error, PresetError::Field { field, .. } if field == "ftl"), "{error}");
}

#[test]
fn what_is_not_toml_is_named_by_its_line() {
    let error = Preset::from_toml("kind = \"ssd\"\nname = \n").unwrap_err();
    assert!(matches!(error, PresetError::Syntax { line: 2, .. }), "{error}");
    let twice = changed("slc", "[host]", "[host]\n[host]");
    let error = Preset::from_toml(&twice).unwrap_err();
    let line = line_of("slc", "[host]") + 1;
    assert!(matches!(error, PresetError::Syntax { line: at, .. } if at == line), "{error}");
}

#[test]
fn an_unknown_name_is_answered_with_the_names_there_are() {
    let error = Preset::named("floppy").unwrap_err().to_string();
    assert!(error.contains("\"floppy\"") && error.contains("crucial-m4, crucial-m4-paper"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Preset::from_file("no/such/file.toml").unwrap_err();
    assert!(matches!(&error, PresetError::Read { path, .. } if path == "no/such/file.toml"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, changed("slc", "unit = \"die\"", "unit = \"bus\"")).unwrap();
    let error = Preset::from_file(&path).unwrap_err().to_string();
    assert!(error.starts_with(path.to_str().unwrap()), "{error}");
}
