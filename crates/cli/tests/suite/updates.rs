//! `advise --updates`: the costs of updates in addition to inserts.

use crate::common::{Folder, json};

const REFUSING: &str = "advise --entries 1e6 --policy reject --inserts 1e5 --lookups 1e5 --updates";

#[test]
fn updates_of_a_table_that_is_cleaned_are_predicted_and_count_by_their_share() {
    let folder = Folder::new();
    let shares = ["0", "0.8"].map(|it| json(&folder.run(&format!("{REFUSING} {it} --json"))));
    let of = |structure: &str, name: &str| {
        shares.each_ref().map(|it| it[structure][name].as_f64().expect("a number"))
    };
    let [without, with] = of("bufferhash", "update_write_bytes");
    let inserts = of("bufferhash", "write_amplification_with_log")[0] * 16.0;
    assert!(without == with && with > 1.5 * inserts, "{without}, {with} and {inserts}");
    assert!(of("bufferhash", "updates_per_s")[0] < of("bufferhash", "inserts_per_s")[0]);
    assert!(of("bufferhash", "update_read_bytes")[0] > 16.0);
    for (name, rises) in [("busy_share", true), ("ops_per_s", false), ("lifetime_years", false)] {
        let [without, with] = of("bufferhash", name);
        assert_eq!(without < with, rises, "{name}: {without} and {with}");
        let [without, with] = of("slicehash", name);
        assert_eq!(without, with, "{name} of a SliceHash, whose updates are inserts");
    }
}

#[test]
fn updates_are_shown_where_they_are_stated_or_cost_something_else() {
    let folder = Folder::new();
    let text = |words: &str| folder.run(&format!("advise --entries 1e6 {words}")).stdout;
    let shown = text("--policy reject");
    assert!(shown.contains("update, written") && shown.contains("updates/s"), "{shown}");
    assert!(!text("").contains("update, written"));
    let shown = text("--updates 1");
    assert!(shown.contains("update, written") && shown.contains("as an insert"), "{shown}");
}
