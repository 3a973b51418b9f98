//! Completions and man pages, with the code of `nandex`.

use crate::common::Folder;

#[test]
fn completions_and_man_pages_are_those_of_its_own_verbs() {
    let folder = Folder::new();
    let completions = folder.run("completions bash");
    assert_eq!(completions.code, 0, "{completions:?}");
    assert!(completions.stdout.contains("complete -F _nandex__lab"), "{completions:?}");
    let pages = folder.run("man pages");
    assert_eq!(pages.code, 0, "{pages:?}");
    assert!(folder.path("pages/nandex-lab-sim.1").is_file(), "{pages:?}");
    assert!(!folder.path("pages/nandex.1").exists(), "{pages:?}");
    assert!(folder.run("man").stdout.contains("nandex\\-lab \\- Simulated flash"));
}
