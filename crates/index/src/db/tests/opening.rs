//! New files, devices of the caller, and structures opened by their names.

use super::*;

#[test]
fn a_new_file_gets_its_name_when_it_is_finished() {
    let (_folder, path) = file();
    let left = nandex_device::output::unfinished_path(&path);
    let fill = |options: DatabaseOptions| {
        let db = options.open(&path).unwrap();
        db.map("m").create_or_open().unwrap().put(b"k", b"v").unwrap();
        db
    };
    // A run that was stopped leaves a file that does not pass as whole.
    drop(fill(options().unfinished()));
    assert!(left.exists() && !path.exists());
    for options in [options().create(Create::Open), options().read_only()] {
        let found = text(options.open(&path));
        assert!(found.contains("it is unfinished") && !path.exists(), "{found}");
    }
    // The next run continues it, or replaces it.
    let resumed = options().resume().open(&path).unwrap();
    assert_eq!(TableOrMap::names(resumed.volume()), ["m"]);
    assert_eq!(resumed.unfinished().path_of(&path), left);
    let found = text(options().unfinished().open(&path));
    assert!(found.contains("another run is making it"), "{found}");
    drop(resumed);
    let again = options().unfinished().open(&path).unwrap();
    assert_eq!(again.volume().structures(), []);
    drop(again);
    let db = fill(options().unfinished());
    db.finish().unwrap();
    assert!(path.exists() && !left.exists());
    db.finish().unwrap();
    drop(db);
    // A finished file is opened as it is.
    let map = options().unfinished().open(&path).unwrap().map("m").create_or_open().unwrap();
    assert_eq!(map.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    drop(map);
    let found = text(options().unfinished().create(Create::New).open(&path));
    assert!(found.contains("exists"), "{found}");
}

#[test]
fn devices_of_the_caller_are_made_once_and_opened_again() {
    let memory = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new()) };
    let devices = VolumeDevices { volume: memory(), log: Some(memory()) };
    let make = |options: DatabaseOptions| options.open_on(devices.clone());
    assert!(make(options().create(Create::Open)).is_err(), "there is nothing to open");
    let marked = VolumeOptions {
        log_bytes: 16 << 20,
        completion: Completion::Unfinished,
        ..VolumeOptions::default()
    };
    let db = make(options().volume(marked)).unwrap();
    assert_eq!(db.volume().log().capacity_bytes(), 16 << 20);
    let table = db.table("t").entries(1000).create_or_open().unwrap();
    table.insert_u64(7, 42).unwrap();
    table.close().unwrap();
    assert!(db.volume().is_unfinished());
    db.finish().unwrap();
    assert!(!db.volume().is_unfinished());
    drop(db);
    assert!(make(options().create(Create::New)).is_err(), "it holds a volume");
    let before = devices.volume.page_count();
    let db = make(options().read_only()).unwrap();
    let table = db.table("t").create_or_open().unwrap();
    assert_eq!(table.get_u64(7).unwrap(), Some(42));
    assert!(table.insert_u64(8, 1).is_err());
    drop((table, db));
    assert_eq!(devices.volume.page_count(), before);
    let db = make(options()).unwrap();
    assert_eq!(db.table("t").create_or_open().unwrap().get_u64(8).unwrap(), None);
}

#[test]
fn tables_and_maps_of_any_kind_are_opened_by_name() {
    let (_folder, path) = file();
    let db = open(&path).unwrap();
    drop(db.table("t").entries(1000).widths(9, 3).create_or_open().unwrap());
    drop(db.table("g").policy(Policy::Grow).create_or_open().unwrap());
    drop(db.map("m").create_or_open().unwrap());
    drop(db.filter("f").keys(1000).create_or_open().unwrap());
    assert_eq!(TableOrMap::names(db.volume()), ["t", "g", "m", "f"]);
    for (name, key, value) in [("t", &[1; 9][..], &[2; 3][..]), ("m", b"k", b"value")] {
        let any = db.table_or_map(name).unwrap();
        any.put_many(&[(key, value)]).unwrap();
        any.sync().unwrap();
        assert_eq!(any.get_many(&[key]).unwrap(), [Some(value.to_vec())]);
        let mut found = Vec::new();
        any.for_each(|key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok::<_, Error>(())
        })
        .unwrap();
        assert_eq!(found, [(key.to_vec(), value.to_vec())]);
        assert_eq!(any.widths(), (name == "t").then_some((9, 3)));
        assert_eq!((any.stats().entries, any.grows()), (1, name == "m"));
        assert!(any.stats().flash_bytes >= any.index().stats().flash_bytes);
        any.remove(key).unwrap();
        assert_eq!(any.get_many(&[key]).unwrap(), [None]);
        any.close().unwrap();
    }
    assert!(db.table_or_map("g").unwrap().growth_bytes_per_entry().is_none_or(|it| it > 0.0));
    for name in ["f", "none"] {
        assert!(db.table_or_map(name).is_err());
    }
}
