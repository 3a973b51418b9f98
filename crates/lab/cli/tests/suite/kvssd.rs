//! The verbs of `nandex-lab kvssd`: measurements of a drive on simulated flash.

use std::fs;

use crate::common::{Folder, json};

#[test]
fn what_cannot_be_measured_is_refused() {
    Folder::new().assert_refused(
        "
1 | kvssd bench --preset none | none
2 | kvssd bench --count 0 --capacity 1MiB --value-max 4KiB | '--count <COUNT>': 0 is too few
1 | kvssd bench --capacity 1MiB --value-max 32KiB --count 5 --value-bytes 20000 --iops-model | up to 18607 bytes
",
    );
}

#[test]
fn a_bench_repeats_on_a_simulated_drive_and_counts_index_reads() {
    let folder = Folder::new();
    let command = "kvssd bench --capacity 8MiB --value-max 4KiB --count 3000 --commands 500 \
                   --value-bytes 64,1000 --json";
    let run = || {
        let mut sizes = json(&folder.run(command));
        let peaks = sizes.as_array_mut().unwrap().iter_mut();
        // The memory of the process is the only figure that differs.
        peaks.for_each(|size| drop(size.as_object_mut().unwrap().remove("resident_peak_bytes")));
        sizes
    };
    let sizes = run();
    assert_eq!(sizes, run(), "virtual time repeats");
    assert_eq!(sizes[1]["value_bytes"], 1000);
    for size in sizes.as_array().unwrap() {
        let runs = size["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 5);
        for run in runs {
            assert!(run["commands_per_s"].as_f64().unwrap() > 0.0, "{run}");
            assert!(run["index_reads_mean"].as_f64().unwrap() <= 1.0, "{run}");
        }
    }
}

#[test]
fn traces_are_replayed_and_a_bad_line_is_named() {
    let folder = Folder::new();
    let trace = "1 REST.PUT.OBJECT a1 100\n2 REST.GET.OBJECT a1 100 0 99\n3 REST.GET.OBJECT b2 9\n";
    fs::write(folder.path("t.ibm"), trace).unwrap();
    let command = "kvssd replay --trace t.ibm --format ibm --capacity 1MiB --value-max 4KiB --json";
    let replayed = json(&folder.run(command));
    assert_eq!((&replayed["misses"], &replayed["requests"]["get"]), (&1.into(), &2.into()));
    assert_eq!(replayed["is_whole"], true);
    fs::write(folder.path("t.ibm"), format!("{trace}4 REST.EAT.OBJECT a1\n")).unwrap();
    let bad = folder.run(command);
    assert_eq!((bad.code, &bad.stdout[..]), (1, ""));
    assert!(bad.stderr.contains("t.ibm:4: expected REST.GET"), "{bad:?}");
    let arc: String = (0..400).map(|at| format!("{at} 1 0 {at}\n")).collect();
    fs::write(folder.path("t.arc"), arc).unwrap();
    let command = "kvssd replay --trace t.arc --format arc --fill --capacity 1MiB --value-max 4KiB";
    let full = folder.run(command);
    assert_eq!(full.code, 1, "{full:?}");
    assert!(full.stdout.contains("KVS_ERR_DEV_CAPACITY"), "{full:?}");
}
