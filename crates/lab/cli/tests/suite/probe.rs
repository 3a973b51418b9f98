//! `nandex-lab probe`, on a simulated device.

use crate::common::{Folder, json};

#[test]
fn a_preset_is_probed_and_its_channels_are_found() {
    let folder = Folder::new();
    let found = folder.run("probe --preset crucial-m4-paper --size 64MiB --svg p.svg --json");
    assert_eq!(found.code, 0, "{found:?}");
    assert!(folder.path("p.svg").exists());
    let found = json(&found);
    assert_eq!(found["place"], "crucial-m4-paper, simulated");
    assert!(found["channels"]["value"].as_u64().is_some_and(|count| count > 1), "{found}");
}

#[test]
fn a_file_is_left_to_the_other_command() {
    Folder::new().assert_refused(
        "
2 | probe new.flash | unexpected argument
2 | probe --preset none | possible values
",
    );
}
