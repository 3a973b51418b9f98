//! Entries that are absorbed while removals of their keys are buffered come after these: live, after a power
//! cut during any operation of the absorption, and after a close.

use std::fmt::Debug;
use std::sync::Arc;

use nandex::device::Device;
use nandex::{Counting, Prefer, Table};
use nandex_baseline::registry;
use nandex_sim::workload::SplitMix64;
use nandex_trial::filter::FilterSetup;
use nandex_trial::table::{TableContract, TableSetup};
use nandex_trial::{
    Contract, Counters, Cuts, DeviceKind, Session, Stop, Sweep, Watcher, amount, parallel,
    sweep_life,
};

/// A life whose power is cut: each step is one call.
struct Steps<'s, 'c, C: Contract> {
    session: &'s mut Session<C>,
    cuts: &'s mut Cuts<'c>,
}

impl<C: Contract> Steps<'_, '_, C> {
    fn step(
        &mut self,
        part: &'static str,
        act: impl FnOnce(&mut Session<C>) -> Result<(), Stop>,
    ) -> Result<(), String> {
        Watcher::<C>::begins(self.cuts, part);
        let result = act(self.session);
        self.cuts.after(self.session, result)?;
        self.session.settle();
        Ok(())
    }

    /// Closes and reopens it, and looks everything up.
    fn reopen(&mut self, device: Arc<dyn Device>) -> Result<(), String> {
        self.step("close", Session::close_first)?;
        self.step("open", |session| session.open(device))?;
        self.step("look", Session::look)
    }
}

/// Cuts each of these lives, and prints the number of cuts.
fn cut_all<C: Contract + Debug>(
    setups: impl Iterator<Item = C>,
    one_in: u64,
    live: impl Fn(&mut Steps<'_, '_, C>, Arc<dyn Device>) -> Result<(), String> + Sync,
) -> Counters {
    let one_in = amount::one_in(one_in);
    let lives = parallel::each((0..).zip(setups), |(seed, setup)| {
        let mut counters = Counters::default();
        let device = DeviceKind::Instant;
        let sweep = Sweep { seed, device, calls: 0, one_in, failures: None };
        let result = sweep_life(setup.clone(), sweep, &mut counters, |session, device, cuts| {
            live(&mut Steps { session, cuts }, device)
        });
        result.unwrap_or_else(|what| panic!("{setup:?}: {what}"));
        counters
    });
    let mut total = Counters::default();
    lives.iter().for_each(|counters| total += counters);
    println!("{total}");
    total
}

fn table_life<C: TableContract>(
    steps: &mut Steps<'_, '_, C>,
    device: Arc<dyn Device>,
) -> Result<(), String> {
    let all: Vec<_> = (0..steps.session.setup().keys().min(150)).collect();
    steps.step("create", |session| session.create(Arc::clone(&device)))?;
    for prefer in [Prefer::First, Prefer::Last] {
        steps.step("insert", |session| session.insert_many(&all))?;
        steps.step("flush", |session| {
            let result = session.handle().flush();
            session.synced(result)
        })?;
        for key in (1..all.len() as u64).step_by(23) {
            steps.step("remove", |session| session.remove(key))?;
        }
        steps.step("absorb", |session| session.absorb(&all, prefer))?;
        steps.step("look", Session::look)?;
        for key in (1..all.len() as u64).step_by(31) {
            steps.step("remove", |session| session.remove(key))?;
        }
        steps.reopen(Arc::clone(&device))?;
    }
    Ok(())
}

#[test]
fn a_tables_removals_that_are_buffered_come_before_what_it_absorbs() {
    let kinds = registry::tables().filter(|(row, table)| table.merges_into == Some(row.kind));
    let setups = kinds.flat_map(|(_, table)| {
        (0..2 * table.testing.variants).map(move |number| TableSetup::registered(table, number))
    });
    let rings = (0..24).map(TableSetup::bufferhash);
    let slices = (0..24).map(TableSetup::slicehash);
    let total = cut_all(setups.chain(rings).chain(slices), 12, table_life);
    assert!(total.cut_points > 1000, "{total}");
}

fn filter_life(
    steps: &mut Steps<'_, '_, FilterSetup>,
    device: Arc<dyn Device>,
) -> Result<(), String> {
    let mut rng = SplitMix64::new(1);
    let all: Vec<_> = (0..steps.session.past.count().min(120)).collect();
    let some: Vec<_> = all.iter().copied().step_by(7).collect();
    steps.step("create", |session| session.create(Arc::clone(&device)))?;
    for sorted in [false, true, false] {
        let takes_streams = |session: &Session<FilterSetup>| {
            session.setup().is_exact() && session.handle().of::<Counting>().is_some()
        };
        if sorted && !takes_streams(steps.session) {
            continue;
        }
        steps.step("insert", |session| session.insert_many(&all))?;
        steps.step("flush", |session| {
            let result = session.handle().flush();
            session.synced(result)
        })?;
        steps.step("remove", |session| session.remove_many(&some))?;
        steps.step("absorb", |session| match sorted {
            true => session.absorb_sorted(&all, &mut rng),
            false => session.absorb(&all, &mut rng),
        })?;
        steps.step("look", Session::look)?;
        steps.step("delete", |session| session.delete_many(&some))?;
        steps.reopen(Arc::clone(&device))?;
    }
    Ok(())
}

#[test]
fn a_filters_removals_that_are_buffered_come_before_what_it_absorbs() {
    let setups = registry::filters().flat_map(|(_, row)| {
        (0..row.testing.variants).map(move |number| FilterSetup::registered(row, number))
    });
    let cascades = (0..24).map(FilterSetup::cascade);
    let total = cut_all(setups.chain(cascades), 12, filter_life);
    assert!(total.cut_points > 1000, "{total}");
}
