//! Tests of the cache alone: which content it finds, forgets and keeps.

use nandex::VolumeOptions;
use nandex_sim::SimDevice;

use super::*;
use crate::anchors::anchors;
use crate::container::{containers_of, key_of};
use crate::testing::{SMALL, cache, cache_on, noise};

fn container(seed: u64) -> Container {
    let bytes = noise(20_000, seed);
    let chunks: Vec<(Key, &[u8])> = bytes.chunks(1000).map(|it| (key_of(it), it)).collect();
    containers_of(&chunks).remove(0)
}

fn add(cache: &Cache, container: &Container) {
    let view = View::new(cache, Owner::default());
    view.insert(container.clone(), &anchors(container.content())).unwrap();
}

fn named(cache: &Cache, container: &Container) -> Option<Arc<Container>> {
    let view = View::new(cache, Owner::default());
    let place = view.find_named(&[container.name()]).unwrap()[0]?;
    view.load_named(&place).unwrap()
}

#[track_caller]
fn assert_found(cache: &Cache, container: &Container) {
    assert_eq!(*named(cache, container).unwrap(), *container);
    let keys: Vec<Key> = container.chunks().iter().map(|chunk| chunk.key).collect();
    for (index, place) in (0..).zip(cache.find(&keys).unwrap()) {
        let place = place.unwrap();
        assert_eq!((place.index, place.name), (index, container.name()));
    }
    let anchors = anchors(container.content());
    assert!(!anchors.is_empty());
    assert!(cache.find_anchors(&anchors).unwrap().iter().all(Option::is_some));
}

#[test]
fn what_was_added_is_found_before_and_after_it_is_published() {
    let cache = cache();
    let container = container(1);
    assert_eq!(named(&cache, &container), None);
    add(&cache, &container);
    assert_found(&cache, &container);
    cache.sync().unwrap();
    assert_eq!(cache.recent().bytes(), 0);
    assert_found(&cache, &container);
}

#[test]
fn chunks_in_the_order_of_before_are_found_by_the_tables_of_their_containers() {
    let device = SimDevice::instant();
    let cache = cache_on(Arc::new(device.clone()), SMALL);
    let all: Vec<Container> = (0..20).map(container).collect();
    all.iter().for_each(|container| add(&cache, container));
    drop(cache);
    let cache = Cache::open(Arc::new(device)).unwrap();
    let view = View::new(&cache, Owner::default());
    let mut keys: Vec<Key> =
        all.iter().flat_map(|it| it.chunks().iter().map(|it| it.key)).collect();
    keys.splice(50..50, (0..50u32).map(|number| key_of(&number.to_le_bytes())));
    let expected = cache.find(&keys).unwrap();
    assert_eq!(expected.iter().flatten().count(), keys.len() - 50);
    let before = cache.stats();
    assert_eq!(view.find_in_order(&keys, |_| true).unwrap(), expected);
    let after = cache.stats();
    assert!(after.index_hits - before.index_hits < keys.len() as u64 / 4, "{after:?}");
    assert!(after.flash_reads - before.flash_reads < keys.len() as u64 / 4, "{after:?}");
    // A container that must not be referred to is not used, and another owner finds nothing.
    let name = all[3].name();
    let allowed = view.find_in_order(&keys, |it| *it != name).unwrap();
    for (found, expected) in allowed.iter().zip(&expected) {
        assert_eq!(*found, expected.filter(|it| it.name != name));
    }
    let other = View::new(&cache, Owner::of(b"other"));
    assert!(other.find_in_order(&keys, |_| true).unwrap().iter().all(Option::is_none));
}

#[test]
fn a_container_that_is_there_is_not_added_again() {
    let cache = cache();
    add(&cache, &container(1));
    cache.sync().unwrap();
    add(&cache, &container(1));
    assert_eq!(cache.stats().containers_added, 1);
}

/// Content that the other side lacked recurs in a container that may already exist, while its chunks lead to another
/// one that the other side still lacks.
#[test]
fn chunks_lead_to_the_container_that_was_inserted_last_also_if_it_was_there() {
    let cache = cache();
    let first = container(1);
    add(&cache, &first);
    let chunks: Vec<(Key, &[u8])> =
        first.chunks()[1..].iter().map(|chunk| (chunk.key, first.bytes_of(chunk))).collect();
    let second = containers_of(&chunks).remove(0);
    add(&cache, &second);
    assert_eq!(cache.find(&[chunks[0].0]).unwrap()[0].unwrap().name, second.name());
    cache.sync().unwrap();
    add(&cache, &first);
    assert_found(&cache, &first);
    cache.sync().unwrap();
    assert_found(&cache, &first);
    assert_eq!(cache.stats().containers_added, 2);
}

#[test]
fn the_oldest_is_forgotten_and_the_newest_is_there() {
    let cache = cache();
    let all: Vec<Container> = (0..500).map(container).collect();
    all.iter().for_each(|container| add(&cache, container));
    cache.sync().unwrap();
    assert!(cache.stats().recycled_segments > 0);
    assert_eq!(named(&cache, &all[0]), None);
    assert_eq!(cache.find(&[all[0].chunks()[0].key]).unwrap(), [None]);
    // The cache still has its nominal content.
    let kept = SMALL.content_bytes as usize / 20_500;
    all[all.len() - kept..].iter().for_each(|container| assert_found(&cache, container));
}

#[test]
fn a_cache_is_there_when_it_is_opened_again() {
    let device = SimDevice::instant();
    let cache = cache_on(Arc::new(device.clone()), SMALL);
    add(&cache, &container(1));
    drop(cache);
    let cache = Cache::open(Arc::new(device.clone())).unwrap();
    assert_found(&cache, &container(1));
    add(&cache, &container(2));
    cache.close().unwrap();
    let cache = Cache::open(Arc::new(device)).unwrap();
    assert_found(&cache, &container(1));
    assert_found(&cache, &container(2));
}

#[test]
fn another_volume_is_refused() {
    let device = SimDevice::instant();
    drop(Volume::create(Arc::new(device.clone()), VolumeOptions::tiny()).unwrap());
    let error = Cache::open(Arc::new(device)).unwrap_err().to_string();
    assert!(error.contains("wan-names"), "{error}");
}

#[test]
fn ram_is_bounded_by_what_is_loaded_and_recent() {
    let cache = cache();
    for seed in 0..2500 {
        add(&cache, &container(seed));
    }
    assert!(cache.loaded().ram_bytes() <= 32 << 20);
    assert!(cache.recent().bytes() <= cache.limits.recent_bytes);
}
