//! Long lives of structures: a hundred times as many updates as keys, a new key for each removed one, and ten
//! times the keys and back. The power is cut meanwhile, and in a second run pages are damaged. In the end a
//! structure takes no more than a fresh one with the same keys, within the bounds of its page.

mod figures;
mod filters;
mod living;
mod maps;
mod neighbors;
mod tables;

use nandex_trial::parallel;

use figures::Ratios;
use living::{Adversities, Adversity, Lived, Living};
use maps::LivedMap;
use tables::LivedTable;

/// The number of present keys.
const N: u64 = 800;

/// Updates for each key.
const TIMES: u64 = 100;

/// The changes of a structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    /// Puts keys again, drawn uniformly.
    Updates,
    /// Puts new keys, and removes as many of the oldest.
    Churn,
    /// Puts ten times the keys, and removes all but the first number.
    Shrinks,
}

impl Life {
    /// Lives with `n` keys.
    fn live<S: Lived>(self, living: &mut Living<S>, n: u64) {
        match self {
            Self::Updates => {
                living.put_all(0..n);
                living.update(n, n * TIMES);
            }
            Self::Churn => {
                living.put_all(0..n);
                living.churn(n, 0..n * TIMES);
            }
            Self::Shrinks => {
                living.put_all(0..10 * n);
                living.shrink(n);
            }
        }
    }
}

/// Lives with power cuts, and again with damage, and compares the result with a fresh structure of the same
/// keys. Returns the errors.
fn live<S: Lived>(
    setup: &S,
    (life, n): (Life, u64),
    adversity: Adversity,
) -> Result<Adversities, String> {
    let mut living = Living::new(setup.clone(), 1, adversity);
    life.live(&mut living, n);
    if adversity == Adversity::Damage {
        living.damage();
    }
    let (figures, keys) = (living.figures(), living.wanted());
    let mut fresh = Living::new(setup.clone(), 1, Adversity::Peace);
    fresh.put_all(keys.iter().copied());
    let fresh = fresh.figures();
    let scale = (keys.len(), setup.pages_per_lookup());
    let ratios = Ratios::of(&figures, &fresh, scale);
    let label = format!("{}, {life:?}, {adversity:?}", setup.label());
    println!("{label}: {ratios}, {:?}", living.met);
    let mut wrong = ratios.beyond(&setup.bounds(life), &label);
    if let (Some(bounds), Life::Shrinks) = (setup.compacted_bounds(), life) {
        living.compact();
        let ratios = Ratios::of(&living.figures(), &fresh, scale);
        println!("{label}, compacted: {ratios}");
        wrong = wrong.or(ratios.beyond(&bounds, &format!("{label}, compacted")));
    }
    match wrong {
        Some(what) => Err(format!("{what}\nlived {figures:?}\nfresh {fresh:?}")),
        None => Ok(living.met),
    }
}

/// Runs each of these with power cuts, and again with damage.
fn run_all<S: Lived + Sync>(
    setups: impl Iterator<Item = S>,
    run: impl Fn(&S, Adversity) -> Result<Adversities, String> + Sync,
) {
    let adversities = [Adversity::Cuts, Adversity::Damage];
    let runs = setups.flat_map(|it| adversities.map(|how| (it.clone(), how)));
    let outcomes = parallel::each(runs, |(setup, adversity)| run(&setup, adversity));
    let (mut total, mut wrong) = (Adversities::default(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(met) => total.add(&met),
            Err(what) => wrong.push(what),
        }
    }
    println!("{total:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(total.cuts > 0 && total.damaged > 0 && total.told > 0, "{total:?}");
}

fn live_all<S: Lived + Sync>(setups: impl Iterator<Item = S>, (life, n): (Life, u64)) {
    run_all(setups, |setup, adversity| live(setup, (life, n), adversity));
}

#[test]
fn tables_that_are_updated_a_hundred_times_stay_as_small_as_fresh_ones() {
    let life = Life::Updates;
    live_all(LivedTable::keeping(life, (N, N + N / 4)), (life, N));
}

#[test]
fn tables_that_take_a_new_key_for_each_old_one_stay_as_small_as_fresh_ones() {
    let life = Life::Churn;
    live_all(LivedTable::keeping(life, (N, 3 * N)), (life, N));
}

#[test]
fn tables_that_lose_nine_keys_of_ten_become_small_again() {
    let life = Life::Shrinks;
    live_all(LivedTable::keeping(life, (10 * N, 10 * N)), (life, N));
}

#[test]
fn maps_that_are_lived_in_stay_as_small_as_fresh_ones() {
    live_all(LivedMap::keeping(Life::Updates, (N, N + N / 4)), (Life::Updates, N));
    let n = 3 * N;
    live_all(LivedMap::keeping(Life::Churn, (n, 3 * n)), (Life::Churn, n));
    live_all(LivedMap::keeping(Life::Shrinks, (10 * N, 10 * N)), (Life::Shrinks, N));
}

/// Lives of filters and counters, whose removed keys are dropped in their merges, or by a compaction; so they
/// do not shrink.
#[test]
fn filters_and_counters_that_are_lived_in_stay_within_their_levels() {
    live_all(filters::keeping(Life::Updates, N), (Life::Updates, N));
    live_all(filters::keeping(Life::Churn, 3 * N), (Life::Churn, N));
}

#[test]
fn indexes_of_neighbours_that_are_lived_in_stay_as_small_as_fresh_ones() {
    let n = 80;
    live_all(neighbors::keeping(Life::Updates, n), (Life::Updates, n));
    live_all(neighbors::keeping(Life::Churn, 2 * n), (Life::Churn, n));
}

/// Lives as a table that evicts. Returns the resources that have grown in the second half of its life.
fn evict(setup: &LivedTable, life: Life, adversity: Adversity) -> Result<Adversities, String> {
    let mut living = Living::new(setup.clone(), 1, adversity);
    let n = setup.evicted_keys(1000);
    living.put_all(0..n);
    let (mut flash_bytes, mut ram_bytes) = (Vec::new(), Vec::new());
    for part in 0..10 {
        let count = N * TIMES / 40;
        match life {
            Life::Churn => living.churn(n, part * count..(part + 1) * count),
            _ => living.update(n, count),
        }
        let stats = living.stats();
        flash_bytes.push(stats.flash_bytes);
        ram_bytes.push(stats.ram_bytes);
    }
    // The memory of a flush and of a batch of lookups is taken by the first of them after an opening.
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
    let is_larger = most(&ram_bytes[5..]) as f64 > 1.5 * most(&ram_bytes[..5]) as f64;
    if is_larger || flash_bytes.iter().any(|bytes| *bytes != flash_bytes[0]) {
        let label = setup.label();
        return Err(format!("{label}, {life:?}: flash {flash_bytes:?}, RAM {ram_bytes:?}"));
    }
    Ok(living.met)
}

#[test]
fn tables_that_evict_keep_their_size() {
    for life in [Life::Updates, Life::Churn] {
        run_all(LivedTable::evicting(3000), |setup, adversity| evict(setup, life, adversity));
    }
}
